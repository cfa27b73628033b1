"""The program `foretrace`, called with its JSON."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from .answer import Comparison, ForetraceError, NcclTests, Plan, Simulation, Sweep

BUNDLED = pathlib.Path(__file__).resolve().parent / "_program"  # in a wheel


def find_program():
    """Path of the program: the wheel's own, else the PATH's."""
    own = BUNDLED / "bin" / "foretrace"
    return str(own) if own.exists() else shutil.which("foretrace")


def main():
    """The command `foretrace` of a wheel."""
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])


def _run(arguments, foretrace=None):
    """What it printed, what it said beside, and whether its answer was a good one. ForetraceError where it refused."""
    program = foretrace or find_program()
    if not program:
        raise FileNotFoundError("the program `foretrace` is not on the PATH")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ForetraceError(done.stderr.strip() or f"foretrace {arguments[0]} ended with {done.returncode}", done.returncode)
    return done.stdout, {"notes": done.stderr, "good": done.returncode == 0}


def _ask(kind, arguments, foretrace):
    text, said = _run([*arguments, "--format", "json"], foretrace)
    if not text.strip():
        raise ForetraceError(said["notes"].strip() or f"foretrace {arguments[0]} printed nothing", 1)
    try:
        return kind(json.loads(text), **said)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ForetraceError(f"{foretrace or find_program()} {arguments[0]} printed what is no answer: is it another version?", 1) from None


def _scenario(path):
    path = pathlib.Path(path)
    return path / "step.yaml" if path.is_dir() else path


def simulate(step, machine, *options, foretrace=None):
    """Predicts a captured step, or any scenario: what `foretrace simulate --format json` says, with its regions as rows."""
    return _ask(Simulation, ["simulate", _scenario(step), "--machine", machine, *options], foretrace)


def plan(config, *options, foretrace=None):
    """What `foretrace plan --format json` says of a model's name or config.json; rows are layouts, the best first."""
    return _ask(Plan, ["plan", config, *options], foretrace)


def compare(run, *options, foretrace=None):
    """Predicted against measured: a run's directory, or two (`compare(a, b)`)."""
    return _ask(Comparison, ["compare", run, *options], foretrace)


def nccl_tests(operation, *options, foretrace=None):
    """nccl-tests' table without a GPU: nccl_tests("all_reduce", "-b", 8, "-e", "1G", "-f", 8, "--processes", 8)."""
    return _ask(NcclTests, ["nccl-tests", operation, *options], foretrace)


def sweep(scenario, *options, foretrace=None):
    """All combinations: sweep("x.yaml", "--set", "ranks=2,4", "--with", "nvlink=1x,0.5x"). A row for each point and region."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sweep.jsonl"
        _, said = _run(["sweep", scenario, *options, "-o", file], foretrace)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    return Sweep(lines, **said)
