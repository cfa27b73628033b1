#!/usr/bin/env python3
"""Every shipped measurement against a prediction of the same program: the rows of `compare` beyond a limit.

    hw/laboratory/articles/far_rows.py build/release/sim/foretrace [LIMIT]     LIMIT: 100, in percent

Prints each such row with what the report says of it, then how many it does not explain (nor a comment of the
scenario, `# far: REGION: why`), and exits with 1 when there are any. Takes about two minutes.
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
MEASURED = ROOT / "reports" / "measured"
FAR = re.compile(r"\| +([+-][\d.]+) % \|")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)


def parameters_of(timeline, name):
    """As the timeline says; older ones say it by their directory."""
    given = (timeline["versions"].get("parameters") or "").split()
    ranks = re.match(r"(\d+)_ranks/", name)
    has_ranks = re.search(r"(?m)^parameters:.*\branks:", (ROOT / timeline["scenario"]["file"]).read_text())
    if ranks and has_ranks and not given:
        given.append(f"ranks={ranks.group(1)}")
        if name.startswith("3_ranks/nccl_"):  # sizes that three ranks divide
            given += ["small=48B", "large=6MiB"]
    return [word for one in given for word in ("--set", one)]


def far_rows(foretrace, measured, limit):
    """(name, [(row, explained)]), or (name, why there is no comparison)."""
    name = str(measured.parent.relative_to(MEASURED))
    timeline = json.loads(measured.read_text())
    machine = "h100-nvswitch-8" if name.startswith("h100") else "h200-nvswitch-8"
    with tempfile.TemporaryDirectory() as scratch:
        predicted = run(foretrace, "simulate", ROOT / timeline["scenario"]["file"], "--machine", machine, "-o",
                        scratch, *parameters_of(timeline, name))
        if predicted.returncode not in (0, 1):
            return name, predicted.stderr.strip().splitlines()[0]
        compared = run(foretrace, "compare", scratch, measured)
    if compared.returncode not in (0, 1):
        return name, compared.stderr.strip().splitlines()[0]
    in_place = set(re.findall(r"# far: (\w+):", (ROOT / timeline["scenario"]["file"]).read_text()))
    rows = []
    for line in compared.stdout.splitlines():
        if not line.startswith("|"):
            continue
        errors = [float(error) for error in FAR.findall(line)[:1]]
        if errors and abs(errors[0]) > limit:
            explained = line.split("|")[-2].strip() not in ("", "OUTSIDE")
            rows.append((line, explained or line.split("|")[1].strip() in in_place))
    return name, rows


def main():
    foretrace, limit = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) > 2 else 100.0
    files = sorted(MEASURED.glob("**/measured.timeline.json"))
    reports = far = unexplained = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, rows in pool.map(lambda file: far_rows(foretrace, file, limit), files):
            if isinstance(rows, str):
                print(f"{name}: {rows}")
                continue
            reports += 1
            for line, is_explained in rows:
                far += 1
                unexplained += not is_explained
                print(f"{name}{'' if is_explained else ' (NOT EXPLAINED)'}: {re.sub(' +', ' ', line)}")
    print(f"{reports} of {len(files)} reports compared; {far} rows beyond {limit:g} %, {unexplained} not explained")
    return 1 if unexplained or reports < len(files) else 0


if __name__ == "__main__":
    sys.exit(main())
