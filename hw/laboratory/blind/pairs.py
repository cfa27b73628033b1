#!/usr/bin/env python3
"""Are paired bands (sim/applications/sweep/paired.h) as wide as they should be? Pairs of regions of a blind round's programs.

pairs.py FORETRACE ROUND [MACHINE]

Each program is predicted as a sweep of one point; a pair's ratio is compared with the measured one. Every program counts
once. Printed for correlations of what no deciding parameter explains: the share of pairs within the paired band, its
median width beside bands that share nothing, and the pairs whose paired band is at most half as wide.
"""
import collections
import csv
import itertools
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import rounds


def regions_of(foretrace, file, machine, scratch):
    rows = pathlib.Path(scratch) / f"{file.stem}.jsonl"
    command = [foretrace, "sweep", file, "--machine", machine, "-j", "1", "-o", rows]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return []
    return json.loads(rows.read_text(encoding="utf-8").splitlines()[1]).get("regions", [])


def off(region):
    return region["high_us"] / region["us"] - 1 if region["us"] > 0 else 0


def paired(a, b, common):
    """As paired_off() of sim/applications/sweep/paired.cc; and as if nothing were shared."""
    shares = collections.defaultdict(lambda: [0, 0, 0])
    for i, region in enumerate((a, b)):
        for by in region["decided_by"]:
            shares[by["parameter"]][i] = by["share"]
            shares[by["parameter"]][2] = max(shares[by["parameter"]][2], by["spread"])
    squares = sum(((s - t) * spread) ** 2 for s, t, spread in shares.values())
    rests = [math.sqrt(max(0, off(region) ** 2 - sum((of[i] * of[2]) ** 2 for of in shares.values())))
             for i, region in enumerate((a, b))]
    squares += rests[0] ** 2 + rests[1] ** 2 - 2 * common * rests[0] * rests[1]
    apart = math.hypot(off(a), off(b))
    return min(math.sqrt(max(0, squares)), apart), apart


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    foretrace, directory = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    machine = sys.argv[3] if len(sys.argv) > 3 else "h200-nvswitch-8"
    measured = collections.defaultdict(dict)  # the process and instance that took longest
    with (directory / f"evaluation-{machine}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            of = measured[row["program"]]
            of[row["region"]] = max(of.get(row["region"], 0), float(row["measured_us"]))
    pairs = []
    with tempfile.TemporaryDirectory() as scratch, rounds.opened(directory) as inside:
        for file in sorted((inside / "programs").rglob("*.yaml")):
            truth = measured.get(file.stem, {})
            regions = [r for r in regions_of(foretrace, file, machine, scratch) if r["name"] in truth and r["us"] > 0]
            all_of = list(itertools.combinations(regions, 2))
            for a, b in all_of:
                error = math.log(truth[b["name"]] / b["us"]) - math.log(truth[a["name"]] / a["us"])
                pairs.append((a, b, abs(error), 1 / len(all_of)))
    total = sum(weight for *_, weight in pairs)
    print(f"{len(pairs)} pairs of {total:.0f} programs")
    for common in (0, 0.5, 0.8, 1):
        held = apart_held = close = close_held = 0
        widths = []
        for a, b, error, weight in pairs:
            band, apart = paired(a, b, common)
            held += weight * (error <= math.log1p(band))
            apart_held += weight * (error <= math.log1p(apart))
            widths.append(band / apart if apart else 1)
            if band <= 0.5 * apart:
                close, close_held = close + weight, close_held + weight * (error <= math.log1p(band))
        print(f"correlation {common}: {held / total:.2f} within, {apart_held / total:.2f} where nothing is shared, "
              f"width {statistics.median(widths):.2f}; of the narrow ones {close_held / close if close else 1:.2f}")


if __name__ == "__main__":
    main()
