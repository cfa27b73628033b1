"""python3 one_definition_test.py ROOT: every type has one definition.

Two types of one name in one namespace are one to the linker: it keeps either's functions, std::vector's of them
too, and no compiler says so. Types in nameless namespaces and in functions are each file's own."""

import collections
import pathlib
import re
import sys

FOLDERS = ("hw", "models", "reports", "scenarios", "sim", "tests")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
OPENED_OR_CLOSED = re.compile(
    r"namespace\s*(?P<space>[\w:]*)\s*\{|"
    r"\b(?:struct|class|enum class|enum|union)\s+(?:(?:alignas\([^)]*\)|\[\[[^\]]*\]\])\s*)*(?P<type>\w+)(?:\s+final)?\s*(?::(?!:)[^;{}()]*)?\{|[{}]")


def types(text):
    """The full name of each type that is defined at the level of a namespace."""
    around = []  # of what is open: a namespace's name, or None
    for found in OPENED_OR_CLOSED.finditer(NOT_CODE.sub(" ", text)):
        if found[0] == "}":
            if around:
                around.pop()
        elif found["type"]:
            if all(around):
                yield "::".join([*around, found["type"]])
            around.append(None)
        else:
            around.append(found["space"] or None)


def main():
    root = pathlib.Path(sys.argv[1])
    files = collections.defaultdict(list)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".cc", ".cuh", ".cu"):
                for name in types(file.read_text()):
                    files[name].append(str(file.relative_to(root)))
    print(f"{len(files)} types")
    twice = {name: where for name, where in files.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name} is defined {len(where)} times: {', '.join(where)}")
    return 1 if twice or not files else 0


if __name__ == "__main__":
    sys.exit(main())
