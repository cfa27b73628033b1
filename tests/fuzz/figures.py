#!/usr/bin/env python3
"""figures.py [DIRECTORY]: a table of what libFuzzer's logs (build/fuzz/READER.log, by fuzz.sh) say."""

import pathlib
import re
import sys

directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/fuzz")
print("| reader | executions | seconds | edges | features | ended by |\n|---|---:|---:|---:|---:|---|")
for log in sorted(directory.glob("*.log")):
    text = log.read_text(errors="replace")
    reached = re.findall(r"^#(\d+)\t.*?cov: (\d+) ft: (\d+)", text, re.M)
    if not reached:
        continue
    runs, edges, features = reached[-1]
    done = re.search(r"^Done (\d+) runs in (\d+) second", text, re.M)
    error = re.search(r"^(?:==\d+==)? ?ERROR: (.*)", text, re.M)
    ended = error.group(1)[:60] if error else "all done" if done else "runs on"
    print(f"| {log.stem} | {done.group(1) if done else runs} | {done.group(2) if done else ''} | {edges} | {features} | {ended} |")
