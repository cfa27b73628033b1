#!/usr/bin/env python3
"""Predicts captured programs: a line each, to be committed before anything is measured.

    python3 predict.py CAPTURED/ --machine h100-nvswitch-8 --foretrace build/release/sim/foretrace -o predicted.csv
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

COLUMNS = ["program", "step_ms", "low_ms", "high_ms", "busy_ms", "products", "same_kernel", "family", "plain", "allocated", "reserved", "problem"]


def predict(foretrace, machine, scenario):
    done = subprocess.run([*foretrace, "simulate", str(scenario), "--machine", machine, "--format", "json"], capture_output=True, text=True, check=False)
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
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with open(options.output, "w", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        for scenario in sorted(pathlib.Path(options.captured).glob("*/step.yaml")):
            row = predict(options.foretrace.split(), options.machine, scenario)
            out.writerow({"program": scenario.parent.name, **{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}})
            print(scenario.parent.name, row.get("problem", f"{row.get('step_ms', 0):.1f} ms"), file=sys.stderr)


if __name__ == "__main__":
    main()
