"""The program `foretrace`, called with its JSON."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

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
    program = foretrace or find_program()
    if not program:
        raise FileNotFoundError("the program `foretrace` is not on the PATH")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"foretrace {arguments[0]} ended with {done.returncode}")
    return done.stdout


def _scenario(path):
    path = pathlib.Path(path)
    return path / "step.yaml" if path.is_dir() else path


def simulate(step, machine, *options, foretrace=None):
    """Predicts a captured step, or any scenario; returns what `foretrace simulate --format json` says."""
    return json.loads(_run(["simulate", _scenario(step), "--machine", machine, "--format", "json", *options], foretrace))


def plan(config, *options, foretrace=None):
    """What `foretrace plan --format json` says of a model's config.json."""
    return json.loads(_run(["plan", config, "--format", "json", *options], foretrace))
