#!/usr/bin/env python3
"""Figures of the benchmarks beside the last committed ones, as ratios.

    tests/bench/figures.py build/release/tests/bench/table_bench              # runs it, compares with tests/bench/figures.json
    tests/bench/figures.py build/release/tests/bench/table_bench --write TEXT # makes them the committed ones; TEXT: on what machine
    tests/bench/figures.py now.json                                           # of a run with --benchmark_out=now.json

Counts (layouts, simulations, spans, entries) are the same on every machine: exit code 1 where one is more than a tenth larger.
Times depend on the machine: they are printed, and say nothing where other programs run beside.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

COMMITTED = pathlib.Path(__file__).parent / "figures.json"
NOT_COUNTS = {"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index",
              "threads", "iterations", "real_time", "cpu_time", "time_unit", "bytes_per_second", "MiB"}
MOST = 1.1


def rows_of(results):
    """Of each benchmark its milliseconds, and what it counts."""
    rows = {}
    for run in results["benchmarks"]:
        counts = {key: value for key, value in run.items() if key not in NOT_COUNTS}
        figures = {"ms": run["real_time"]} | {key: run[key] for key in ("MiB", "bytes_per_second") if key in run}
        rows[run["name"]] = {"figures": figures, "counts": counts}
    return rows


def results_of(path):
    if not os.access(path, os.X_OK):
        return json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "now.json"
        subprocess.run([path.resolve(), f"--benchmark_out={out}", "--benchmark_out_format=json"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def ratios(now, then):
    return [f"{key} {value:.4g}" + (f" (x {value / then[key]:.2f})" if then.get(key) else "") for key, value in now.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="the benchmark, or what it wrote")
    parser.add_argument("--write", metavar="TEXT", help="keep the figures, with the machine that they are of")
    options = parser.parse_args()
    now = rows_of(results_of(options.results))
    then = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    print(f"ratios are to: {then.get('machine', 'nothing yet')}")
    grown = []
    for name, row in now.items():
        before = then.get(name, {"figures": {}, "counts": {}})
        print(f"{name}: " + ", ".join(ratios(row["figures"], before["figures"]) + ratios(row["counts"], before["counts"])))
        grown += [f"{name}: {key}" for key, value in row["counts"].items() if value > MOST * before["counts"].get(key, value)]
    if options.write:
        COMMITTED.write_text(json.dumps(then | now | {"machine": options.write}, indent=1) + "\n")
        return 0
    for what in grown:
        print(f"more work than before: {what}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
