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


commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
    sys.exit(0 if commands and all(list(several.map(takes, commands))) else 1)
