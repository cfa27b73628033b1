#!/usr/bin/env python3
"""Rows of a table of models/kernels/ from programs that were captured without a GPU and then measured: each captured launch with the time
that its kernel took. Needs no PyTorch.

    python3 hw/pytorch/operators/joined.py CAPTURED/ kernels-0.tar --foretrace build/release/sim/foretrace -o ROWS.csv

CAPTURED/NAME/step.yaml is joined with the member NAME.rank0.kernels.jsonl.gz of the archive (reports/blind/programs/run.py writes both):
the n-th launch of a kernel in one with the n-th in the other, where both have as many. What a closed library does in one operation is one row.
"""

import argparse
import collections
import csv
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tarfile

from table import CLOSED, OURS, PRODUCTS
from work import kernel_word

FIELDS = re.compile(r"(\w+): ([^,{}]+)")
SIZES = ("grid", "block", "inner", "joined", "channels")


def captured_launches(foretrace, scenario):
    """[(what it is joined by, work)] in the host's order, of one step."""
    text = subprocess.run([*foretrace, "print", str(scenario)], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        if "kernel: captured" not in line:
            continue
        fields = dict(FIELDS.findall(line))
        name = fields["name"]
        work = (name, int(fields["size"][:-1]), int(fields.get("flops", 0)), *(int(fields.get(key, 0)) for key in SIZES))
        closed = fields["id"] if name.startswith(fields["id"] + ".") else "product" if name.startswith("product.") else None
        found.append((closed or name, work))
    return found


def measured_launches(file):
    """[(what it is joined by, microseconds)]. What a closed library did in one operation, or a product with its partial sums, is one: the union of the
    times of the operation's kernels, wherever others ran between them."""
    names, operators, found, whole = {}, {}, [], {}
    for line in file:
        one = json.loads(line)
        if one["k"] == "name":
            names[one["i"]] = one["n"]
        elif one["k"] == "op":
            operators[one["i"]] = one["n"]
        elif one["k"] == "launch":
            name, operator = names[one["n"]], operators.get(one.get("op"), "")
            span = (one["t"], one["t"] + one["d"])
            closed = CLOSED.match(operator)
            if OURS.search(name) or not (closed or PRODUCTS.match(operator)):
                found.append((kernel_word(name), [span]))
                continue
            key = operator.split("::")[-1].lstrip("_") if closed else "product"
            if (key, one["oi"]) not in whole:
                whole[key, one["oi"]] = []
                found.append((key, whole[key, one["oi"]]))
            whole[key, one["oi"]].append(span)
    return [(key, union(spans) / 1e3) for key, spans in found]


def union(spans):
    total, last = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, last))
        last = max(last, end)
    return total


def join(captured, measured):
    """[(work, microseconds)], and the names whose counts differ."""
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for key, work in captured:
        ours[key].append(work)
    for key, us in measured:
        theirs[key].append(us)
    differ = {key: (len(ours[key]), len(theirs[key])) for key in ours if len(ours[key]) != len(theirs[key])}
    return [pair for key in ours if key not in differ for pair in zip(ours[key], theirs[key])], differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captured")
    parser.add_argument("measured", nargs="+", help="archives of kernels")
    parser.add_argument("--foretrace", default="foretrace", help="the program, with words before it")
    parser.add_argument("--programs", action="store_true", help="a column more, before the others: the program")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    rows = collections.defaultdict(list)
    for archive in options.measured:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.split(".")[0]
                scenario = pathlib.Path(options.captured) / name / "step.yaml"
                if ".rank0.kernels." not in member.name or not scenario.exists():
                    continue
                with gzip.open(tar.extractfile(member), "rt") as file:
                    pairs, differ = join(captured_launches(options.foretrace.split(), scenario), measured_launches(file))
                for work, us in pairs:
                    rows[(name, *work) if options.programs else work].append(us)
                print(name, len(pairs), "joined; counts differ of", differ, file=sys.stderr)
    with open(options.output, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        for work in sorted(rows):
            many = sorted(rows[work])
            out.writerow([*work, f"{many[len(many) // 2]:.5g}", *([len(many), f"{sum(many):.6g}"] if options.programs else [])])


if __name__ == "__main__":
    main()
