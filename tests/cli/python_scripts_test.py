"""Every script of the repository is Python 3.9's, which hosts with GPUs may still have.

    python_scripts_test.py ROOT

Parsed by its grammar; names, arguments and types that later versions brought are looked for. Prints FILE:LINE: what."""
import ast
import sys
from pathlib import Path

LATER_MODULES = {"tomllib"}
LATER_NAMES = {
    "statistics": {"correlation", "covariance", "linear_regression"},
    "itertools": {"pairwise", "batched"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "types": {"UnionType", "NoneType"},
    "typing": {"Self", "TypeAlias", "ParamSpec", "Concatenate", "TypeGuard", "override"},
    "math": {"cbrt", "exp2", "sumprod"},
    "os": {"EFD_CLOEXEC", "process_cpu_count"},
}
LATER_ARGUMENTS = {"zip": {"strict"}, "dataclass": {"slots", "kw_only"}, "glob": {"include_hidden"}}
LATER_METHODS = {"bit_count"}


def annotations_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns


def later_features(text):
    """[(line, what)] of one file's text."""
    try:
        tree = ast.parse(text, feature_version=(3, 9))
    except SyntaxError as error:
        return [(error.lineno, f"no syntax of Python 3.9: {error.msg}")]
    found = []
    is_lazy = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and
                  any(name.name == "annotations" for name in node.names) for node in tree.body)
    if not is_lazy:
        found += [(part.lineno, "a type as X | Y without `from __future__ import annotations`")
                  for annotation in annotations_of(tree) for part in ast.walk(annotation)
                  if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, name.name) for name in node.names if name.name in LATER_MODULES]
        elif isinstance(node, ast.ImportFrom):
            later = LATER_NAMES.get(node.module, set())
            found += [(node.lineno, f"{node.module}.{name.name}") for name in node.names if name.name in later]
        elif isinstance(node, ast.Attribute):
            of = node.value.id if isinstance(node.value, ast.Name) else None
            if node.attr in LATER_NAMES.get(of, set()) or node.attr in LATER_METHODS:
                found.append((node.lineno, f"{of or ''}.{node.attr}"))
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", None))
            later = LATER_ARGUMENTS.get(name, set())
            found += [(node.lineno, f"{name}({word.arg}=)") for word in node.keywords if word.arg in later]
    return found


def main():
    for text, what in (("match x:\n    case 1: pass\n", "no syntax"), ("def f(a: int | None): pass\n", "X | Y"),
                       ("import statistics\nstatistics.correlation(a, b)\n", "correlation"),
                       ("from itertools import pairwise\n", "pairwise"), ("zip(a, b, strict=True)\n", "strict")):
        if not any(what in found for _, found in later_features(text)):
            sys.exit(f"not found: {what} in {text!r}")
    root = Path(sys.argv[1])
    files = [file for folder in ("hw", "tests", "reports", "scenarios", "sim", "models")
             for file in sorted((root / folder).rglob("*.py")) if "node_modules" not in file.parts]
    problems = [f"{file.relative_to(root)}:{line}: {what}" for file in files
                for line, what in later_features(file.read_text())]
    if len(files) < 50:
        problems.append(f"only {len(files)} scripts found below {root}")
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
