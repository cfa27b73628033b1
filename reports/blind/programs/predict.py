#!/usr/bin/env python3
"""Predicts captured programs: a line each, to be committed before anything is measured.

    python3 predict.py CAPTURED/ --machine h100-nvswitch-8 --foretrace build/release/sim/foretrace -o predicted.csv

With --hosts RESULTS.jsonl (run.py's) each program is predicted for the host that it was measured on, as the reference loops beside its steps
say how fast that was: no time of the program itself is read.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

COLUMNS = ["program", "step_ms", "low_ms", "high_ms", "busy_ms", "products", "same_kernel", "family", "plain", "allocated", "reserved", "problem"]


def loops_of(path):
    """{program: ns of PyTorch's reference loop beside it}"""
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    return {row["name"]: row["host"]["torch_loop_ns"] for row in rows if row.get("outcome") == "measured" and row.get("rank") == 0 and row.get("host")}


def predict(foretrace, machine, scenario, loop_ns=None):
    command = [*foretrace, "simulate", str(scenario), "--machine", machine, "--format", "json"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as host:
        if loop_ns is not None:
            host.write(f"foretrace_host: 1\ntorch_loop: {loop_ns / 1e6:.3f}ms\n")
            host.flush()
            command += ["--host", host.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"problem": done.stderr.strip().splitlines()[0][:200] if done.stderr.strip() else f"exit {done.returncode}"}
    answer = json.loads(done.stdout)
    step, region = answer["captured_step"], answer["regions"][-1]
    busy = step["busy_seconds"] or 1
    return {"step_ms": region["predicted_ns"] * 1e-6, "low_ms": region["low_ns"] * 1e-6, "high_ms": region["high_ns"] * 1e-6, "busy_ms": busy * 1e3,
            "products": step["products_seconds"] / busy, **{k: step["captured_seconds"][k] / busy for k in ("same_kernel", "family", "plain")},
            "allocated": step["memory"]["allocated_peak"], "reserved": step["memory"]["reserved_peak"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captured")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--foretrace", default="foretrace", help="the program, with words before it")
    parser.add_argument("--hosts", help="results.jsonl: the host known")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    loops = loops_of(options.hosts) if options.hosts else None
    with open(options.output, "w", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        for scenario in sorted(pathlib.Path(options.captured).glob("*/step.yaml")):
            if loops is not None and scenario.parent.name not in loops:
                continue
            row = predict(options.foretrace.split(), options.machine, scenario, loops and loops[scenario.parent.name])
            out.writerow({"program": scenario.parent.name, **{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}})
            print(scenario.parent.name, row.get("problem", f"{row.get('step_ms', 0):.1f} ms"), file=sys.stderr)


if __name__ == "__main__":
    main()
