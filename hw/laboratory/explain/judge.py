#!/usr/bin/env python3
"""What each repair saved on GPUs, beside what foretrace explain says that it saves.

judge.py FORETRACE MACHINE MEASURED   MEASURED: the directory that measure.sh wrote, or a CSV that --csv wrote of one
         --csv FILE                   writes the medians of the measured runs
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCENARIOS = ROOT / "scenarios/explain"
COLUMNS = ["scenario", "machine", "passes", "median_us", "p5_us", "p95_us"]


def row_of(file):
    """Of the process that takes longest."""
    timeline = json.loads(file.read_text(encoding="utf-8"))
    samples = max((region["samples_ns"] for region in timeline["regions"] if region["name"] == "run"),
                  key=statistics.median)
    cuts = statistics.quantiles(samples, n=20)
    return {"scenario": timeline["scenario"]["name"], "machine": timeline["machine"], "passes": len(samples),
            "median_us": round(statistics.median(samples) / 1e3, 1), "p5_us": round(cuts[0] / 1e3, 1),
            "p95_us": round(cuts[-1] / 1e3, 1)}


def measured(path):
    if path.is_file():
        return {row["scenario"]: row for row in csv.DictReader(path.open(encoding="utf-8"))}
    rows = (row_of(file) for file in sorted(path.rglob("measured.timeline.json")))
    return {row["scenario"]: row for row in rows}


def explained(foretrace, machine, name, scratch):
    run = pathlib.Path(scratch) / name
    file = SCENARIOS / f"{name}.yaml"
    quiet = {"cwd": ROOT, "check": True, "capture_output": True}
    subprocess.run([foretrace, "simulate", file, "--machine", machine, "-o", run], **quiet)
    text = subprocess.run([foretrace, "explain", run, "--machine", machine, "--format", "json"], **quiet).stdout
    return json.loads(text)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("foretrace", type=pathlib.Path)
    arguments.add_argument("machine")
    arguments.add_argument("measured", type=pathlib.Path)
    arguments.add_argument("--csv", type=pathlib.Path)
    given = arguments.parse_args()
    rows = measured(given.measured)
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows.values())
    print("| Scenario | named first | time, predicted | measured | less without it, predicted | the twin, measured |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for twin in sorted(name for name in rows if name.endswith("_repaired")):
            name = twin.removesuffix("_repaired")
            why = explained(given.foretrace.resolve(), given.machine, name, scratch)
            first = why["causes"][0]
            before, after = (float(rows[run]["median_us"]) for run in (name, twin))
            print(f"| `{name}` | {first['cause']} | {why['seconds'] * 1e3:.2f} ms | {before / 1e3:.2f} ms | "
                  f"{100 * first['gain']:.1f} % | {100 * (1 - after / before):.1f} % |")


if __name__ == "__main__":
    main()
