"""Finds numbers in the model's C++ that are not in numbers.csv, and rows there that no code has.

What a machine, a library or a host is like belongs into models/machines or models/constants, with
its source. In C++ a number is a unit, a guard of the arithmetic, or a fact of a published design.
The names of models/constants are those that the code asks for.

    numbers_test.py ROOT           compares
    numbers_test.py ROOT --list    prints the rows of what is there, to classify
"""

import csv
import pathlib
import re
import sys

ROOMS = ["models", "sim/device", "sim/host", "sim/applications/serving"]
KINDS = {"unit", "guard", "design"}
PLAIN = {"0", "1", "2"}  # of integers; also of floating point

LITERAL = r"(?<![\w.])(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*(?![\w.])"
CONSTANT = re.compile(r"\bconstexpr\b([^;{}()=]*?)\b(k[A-Z]\w*)\s*([={][^;]*);|"
                      r"\bconstexpr\b([^;()=]*?)((?:\bk[A-Z]\w*\s*=\s*[^,;]+,?\s*)+);", re.S)


def stripped(text):
    """Without comments, strings and preprocessor lines."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'R"\((.*?)\)"', '""', text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    return re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)


def value(literal):
    return literal.replace("'", "").rstrip("uUlLfF")


def is_plain(literal):
    text = value(literal)
    if text.lower().startswith("0x"):
        return True  # bits
    return float(text) in (0, 1, 2)


def constants(text):
    """Name and definition of each constexpr k...; the text without them."""
    found = []
    rest = text
    for match in re.finditer(r"\bconstexpr\b[^;]*;", text):
        body = match.group(0)
        names = list(re.finditer(r"\b(k[A-Z]\w*)\s*(?=[={\[])", body))
        if not names:
            continue
        ends = [name.start() for name in names[1:]] + [len(body)]
        for name, end in zip(names, ends):
            numbers = [n for n in re.findall(LITERAL, body[name.end():end]) if not is_plain(n)]
            if numbers:
                found.append(name.group(1))
        rest = rest.replace(body, "")
    return found, rest


def numbers_in(path):
    """Names of constants, and literals with a fraction or an exponent outside of them."""
    named, rest = constants(stripped(path.read_text()))
    bare = [value(n) for n in re.findall(LITERAL, rest)
            if not is_plain(n) and re.search(r"[.eE]", n) and not n.lower().startswith("0x")]
    return set(named) | set(bare)


def sources(root):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".cc", ".h"):
                yield name, path


def unmatched_constants(root):
    """Names that only the code or only models/constants/constants.yaml has."""
    text = (root / "models/constants/constants.yaml").read_text(encoding="utf-8")
    said = set(re.findall(r"^([\w.]+): {value: ", text, flags=re.M))
    asked = set()
    for _, path in sources(root):
        source = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        if "constants/constants.h" in source:
            asked |= {name for name in re.findall(r'"([a-z]\w*\.[\w.]+)"', source)}
    unknown = {name for name in said if name.startswith("network.unknown.")}  # by a parameter's key
    return ([f"models/constants/constants.yaml: nobody asks for {name}" for name in sorted(said - asked - unknown)]
            + [f"{name} is not in models/constants/constants.yaml" for name in sorted(asked - said)])


def main():
    root = pathlib.Path(sys.argv[1])
    there = {(name, number) for name, path in sources(root) for number in numbers_in(path)}
    if "--list" in sys.argv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(sorted(there))
        return 0
    with open(root / "tests/models/numbers.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = {(row["file"], row["number"]) for row in rows}
    problems = [f"{name}: {number} is in no row of tests/models/numbers.csv: a number that was "
                "measured belongs into models/machines, with its source"
                for name, number in sorted(there - known)]
    problems += [f"tests/models/numbers.csv: {name} has no {number} any more: delete the row"
                 for name, number in sorted(known - there)]
    problems += [f"tests/models/numbers.csv: {row['file']}, {row['number']}: kind {row['kind']}"
                 for row in rows if row["kind"] not in KINDS]
    problems += unmatched_constants(root)
    print("\n".join(problems) or f"{len(rows)} numbers, none of them empirical")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
