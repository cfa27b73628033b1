#!/usr/bin/env python3
"""Predicted against measured, program by program.

    python3 evaluate.py ROUND/predicted-h100.csv ROUND/measured-h100.jsonl [-o ROUND/evaluation-h100.md]

Step time is measured as the mean of steps that follow each other; a program whose host takes longer than its GPU is busy
is bound by the host. Of several process launches the median counts. Errors: predicted over measured, less one.
"""

import argparse
import csv
import json
import statistics


def percentile(values, share):
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def line(name, errors, inside=None):
    if not errors:
        return f"| {name} | 0 | | | | |"
    band = f"{100 * sum(inside) / len(inside):.0f} %" if inside else ""
    return (f"| {name} | {len(errors)} | {100 * statistics.median(map(abs, errors)):.4g} % | {100 * percentile(list(map(abs, errors)), 0.9):.4g} % | "
            f"{100 * statistics.median(errors):+.4g} % | {band} |")


def share(values, key, digits):
    return f"{100 * values[key]:+.{digits}f} %" if key in values else ""


def peak_of(memory, kind, i):
    """Bytes at a step's peak, without what scripts before left in the process."""
    return memory[kind][1] - memory.get("left_over", [0, 0])[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("predicted")
    parser.add_argument("measured")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with open(options.predicted) as file:
        predicted = {row["program"]: row for row in csv.DictReader(file)}
    launches, failed = {}, []
    with open(options.measured) as file:
        for row in map(json.loads, file):
            if row.get("outcome") == "measured" and row.get("rank") == 0:
                launches.setdefault(row["name"], []).append(row)
            elif "outcome" in row and row["outcome"] != "measured":
                failed.append(row["name"])
    measured = {name: sorted(rows, key=lambda r: r["free_running_ms"])[(len(rows) - 1) // 2] for name, rows in launches.items()}
    failed = sorted({name for name in failed if name not in measured})
    rows, sums = [], {k: [] for k in ("all", "gpu", "host", "busy", "allocated", "reserved", "in", "in gpu", "in host")}
    for name, real in sorted(measured.items()):
        said = predicted.get(name)
        if said is None or said["problem"]:
            rows.append(f"| {name} | refused: {said['problem'] if said else 'not captured'} |")
            continue
        step, busy, host = real["free_running_ms"], real["gpu_busy_ms"], min(real["host_ms"])
        bound = "host" if host > 1.05 * busy else "gpu"
        error = float(said["step_ms"]) / step - 1
        inside = float(said["low_ms"]) <= step <= float(said["high_ms"])
        for key in ("all", bound):
            sums[key].append(error)
        sums["in"].append(inside)
        sums[f"in {bound}"].append(inside)
        sums["busy"].append(float(said["busy_ms"]) / busy - 1)
        memory = {kind: float(said[kind]) / peak_of(real["memory"], kind, i) - 1 for i, kind in enumerate(("allocated", "reserved")) if kind in real["memory"]}
        for kind, off in memory.items():
            sums[kind].append(off)
        rows.append(f"| {name} | {bound} | {step:.1f} | {float(said['step_ms']):.1f} | {100 * error:+.0f} % | {'yes' if inside else 'no'} | {busy:.1f} | "
                    f"{100 * sums['busy'][-1]:+.1f} % | {share(memory, 'allocated', 3)} | {share(memory, 'reserved', 2)} |")
    text = ["| | programs | median | nine of ten | bias | in the band |", "| --- | ---: | ---: | ---: | ---: | ---: |",
            line("step time", sums["all"], sums["in"]), line("bound by the GPU", sums["gpu"], sums["in gpu"]), line("bound by the host", sums["host"], sums["in host"]),
            line("GPU busy", sums["busy"]), line("memory allocated, peak", sums["allocated"]), line("memory reserved, peak", sums["reserved"]), "",
            f"Not measured: {', '.join(failed) or 'none'}.", "",
            "| program | bound by | measured ms | predicted | error | in band | GPU busy ms | error | allocated | reserved |",
            "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |", *rows]
    text = "\n".join(text) + "\n"
    print(text)
    if options.output:
        with open(options.output, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
