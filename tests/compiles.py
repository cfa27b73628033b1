#!/usr/bin/env python3
"""Does the compiler of a configured build folder take every file of it? Without code being made, which takes g++ twice as long again.

    tests/compiles.py BUILD/      0: it does; 1: it does not, and its messages stand above"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def takes(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    return subprocess.run([*words[:at], *words[at + 2:], "-fsyntax-only"], cwd=entry["directory"]).returncode == 0


def lines(entry):
    """How long it takes, roughly: of a unity file the lines of the files that it includes."""
    text = pathlib.Path(entry["file"]).read_text()
    parts = [line.split('"')[1] for line in text.splitlines() if line.startswith('#include "/')]
    return text.count("\n") + sum(pathlib.Path(part).read_bytes().count(b"\n") for part in parts)


commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
commands.sort(key=lines, reverse=True)  # the longest does not run alone at the end
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
    sys.exit(0 if commands and all(list(several.map(takes, commands))) else 1)
