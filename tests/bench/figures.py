#!/usr/bin/env python3
"""Figures of the benchmarks beside the last committed ones, as ratios.

    build/release/tests/bench/table_bench --benchmark_out=now.json --benchmark_out_format=json
    tests/bench/figures.py now.json            # compares with tests/bench/figures.json
    tests/bench/figures.py now.json --write    # makes them the committed ones

Counts (layouts, simulations, spans, entries) are the same on every machine: exit code 1 where one is more than a tenth larger.
Times depend on the machine: they are printed, and say nothing where other programs run beside.
"""
import argparse
import json
import pathlib
import sys

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


def ratios(now, then):
    return [f"{key} {value:.4g}" + (f" (x {value / then[key]:.2f})" if then.get(key) else "") for key, value in now.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    now = rows_of(json.loads(options.results.read_text()))
    then = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    grown = []
    for name, row in now.items():
        before = then.get(name, {"figures": {}, "counts": {}})
        print(f"{name}: " + ", ".join(ratios(row["figures"], before["figures"]) + ratios(row["counts"], before["counts"])))
        grown += [f"{name}: {key}" for key, value in row["counts"].items() if value > MOST * before["counts"].get(key, value)]
    if options.write:
        COMMITTED.write_text(json.dumps(then | now, indent=1) + "\n")
        return 0
    for what in grown:
        print(f"more work than before: {what}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
