#!/usr/bin/env python3
"""Makes a table of models/kernels/ from what learn.py and programs_run.py measured. Needs no PyTorch.

    python3 hw/pytorch/operators/table.py OPERATORS.jsonl.gz PROGRAMS.jsonl.gz --hbm 3.35TB/s --peak 989TFLOP/s -o TABLE.csv
    python3 hw/pytorch/operators/table.py ... --judge     leaves each program's family out and says how far off its busy time is

A row is a launch (or what a closed library did in an operator): its kernel's word, what it moves and computes, how it was
launched, and its time: in programs as it was among their other kernels, in learn.py's cases between warm and cold.
"""

import argparse
import collections
import csv
import gzip
import json
import math
import re
import statistics

from work import Signature, closed_work_of, kernel_word, work_of

CLOSED = re.compile(r"aten::(cudnn_|_cudnn_attention|convolution_backward|miopen_|_thnn)")
PRODUCTS = re.compile(r"aten::(mm|addmm|bmm|baddbmm|_addmm_activation|linear|matmul|addmv|dot|mv)$")
OURS = re.compile(r"at::native|at::cuda|PyTorchMemEffAttention|pytorch_flash")
BASE_US, MEMORY, COMPUTE = 1.5, 0.8, 0.6
WEIGHTS = {"bytes": 1.0, "flops": 1.0, "grid": 1.0, "block": 1.0, "inner": 0.25, "joined": 0.25, "channels": 0.25}
NEAREST, SOFT, JOINED_MOST = 5, 0.01, 4096
TERMS_LEAST = 12  # rows of a kernel that has terms of its own
THREAD_BYTES = 16  # a thread's largest access
CHUNK = 65536  # elements that a block of multi_tensor_apply takes: kChunkSize in aten/src/ATen/native/cuda/ForeachFunctors.cuh


def rows_of(launches):
    """(word, bytes, flops, grid, block, inner, joined, channels, index of the first launch, all indices) of [operator, kernel, grid, block, kind, bytes]."""
    found, i = [], 0
    while i < len(launches):
        operator, name, grid, block, kind, size = launches[i][:6]
        if operator and CLOSED.match(operator[0]) and not OURS.search(name):
            end = i
            while end < len(launches) and launches[end][0] == operator and not OURS.search(launches[end][1]):
                end += 1
            word, *work = closed_work_of(Signature(operator))
            found.append((word, work[0], work[1], 0, 0, *work[2:], range(i, end)))
            i = end
            continue
        if kind != "kernel" or operator is None or PRODUCTS.match(operator[0]) or not (OURS.search(name) or "attention" in operator[0]):
            i += 1
            continue
        word = kernel_word(name)
        width = 2 if "BFloat16" in name or "Half" in name else 4
        blocks = math.prod(grid)
        if word.startswith("multi_tensor_apply_kernel."):
            end, total = i, 0
            while end < len(launches) and launches[end][:2] == [operator, name]:
                total += math.prod(launches[end][2])
                end += 1
            size = work_of(Signature(operator, width))[0]
            if size < total:  # a profiler leaves long lists out: whole chunks then, of each of its lists
                lists = int((re.search(r"Metadata<[^>]*?(\d+)>", name) or re.search("(1)", "1")).group(1))
                size = total * CHUNK * width * lists
            for at in range(i, end):
                blocks = math.prod(launches[at][2])
                found.append((word, round(size * blocks / total), 0, blocks, math.prod(launches[at][3]), 0, 0, 0, range(at, at + 1)))
            i = end
            continue
        work = work_of(Signature(operator, width), blocks * min(1024, math.prod(block)))
        found.append((word, work[0], work[1], blocks, min(1024, math.prod(block)), *work[2:], range(i, i + 1)))
        i += 1
    return found


def read(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def case_rows(path, warm):
    for case in read(path)[1:]:
        launches = case["launches"]
        if case["case"].startswith("optimizer/") and not case.get("random_gradients"):
            continue  # gradients of 0 make divisions slow
        for *work, at in rows_of(launches):
            hot, cold = (sum(launches[i][k] for i in at) for k in (6, 7))
            yield tuple(work), hot ** warm * cold ** (1 - warm)


def program_rows(path):
    """{program: [(work, us)]}"""
    found = {}
    for program in read(path)[1:]:
        launches = [[program["operators"][one[0]], program["kernels"][one[1]], *one[2:]] for one in program["launches"]]
        found[program["program"]] = [(tuple(work), sum(launches[i][7] for i in at)) for *work, at in rows_of(launches)]
    return found


def table_rows(path):
    """[(work, us)] of a table's file."""
    with open(path) as file:
        for one in csv.reader(line for line in file if not line.startswith(("#", "kernel,"))):
            yield (one[0], *map(int, one[1:8])), float(one[8])


def medians(rows):
    every = collections.defaultdict(list)
    for work, us in rows:
        every[work].append(us)
    return {work: statistics.median(many) for work, many in every.items()}


def log2(value):
    return math.log2(max(1, value))


SHARED_TERMS = (1, 1 / MEMORY, 1 / COMPUTE, 0)


def least_squares(rows):
    """Terms >= 0 for which the sums of each row are nearest to 1; None if there are none. Few columns: every set of them is tried."""
    best = None
    for chosen in range(1, 1 << len(rows[0])):
        columns = [i for i in range(len(rows[0])) if chosen >> i & 1]
        squares = [[sum(row[i] * row[j] for row in rows) for j in columns] + [sum(row[i] for row in rows)] for i in columns]
        solved = eliminate(squares)
        if solved is None or min(solved) < 0:
            continue
        found = [0.0] * len(rows[0])
        for i, value in zip(columns, solved):
            found[i] = value
        off = sum((sum(a * b for a, b in zip(found, row)) - 1) ** 2 for row in rows)
        if best is None or off < best[0] * (1 - 1e-9):
            best = off, found
    return best and best[1]


def eliminate(rows):
    """The solution of linear equations, [coefficients..., right side] each; None where they do not decide."""
    count = len(rows)
    for i in range(count):
        pivot = max(range(i, count), key=lambda r, i=i: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(count):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


class Table:
    """What models/kernels/kernel_table.cc does, for judging here."""

    def __init__(self, rows, hbm, peak):
        self.hbm, self.peak = hbm, peak
        self.kernels, self.families = collections.defaultdict(list), collections.defaultdict(list)
        by_kernel = collections.defaultdict(list)
        for work, us in rows.items():
            by_kernel[work[0]].append((work, us))
        self.terms = {}
        for name, many in by_kernel.items():
            found = least_squares([[part / us for part in self.parts(work)] for work, us in many]) if len(many) >= TERMS_LEAST else None
            if found:
                self.terms[name] = found
            for work, us in many:
                self.kernels[name].append((self.features(work), math.log(us / self.plain(work))))
                self.families[name.split(".")[0]].append((self.features(work), math.log(us / self.plain(work, SHARED_TERMS))))

    def parts(self, work):
        """Microseconds that the terms are multiples of: fixed, bytes, flops, threads."""
        return [BASE_US, work[1] / self.hbm * 1e6, work[2] / self.peak * 1e6, work[3] * work[4] * THREAD_BYTES / self.hbm * 1e6]

    def plain(self, work, terms=None):
        terms = terms or self.terms.get(work[0], SHARED_TERMS)
        return max(1e-3, sum(a * b for a, b in zip(terms, self.parts(work))))

    @staticmethod
    def features(work):
        _, size, flops, grid, block, inner, run, channels = work
        values = (size, flops, grid, block, inner, min(run, JOINED_MOST), channels)
        return [math.sqrt(weight) * log2(value) for weight, value in zip(WEIGHTS.values(), values)]

    def time(self, work):
        rows, terms = self.kernels.get(work[0]), None
        if not rows:
            rows, terms = self.families.get(work[0].split(".")[0]), SHARED_TERMS
        if not rows:
            return self.plain(work)
        here = self.features(work)
        near = sorted((sum((a - b) ** 2 for a, b in zip(here, there)), ratio) for there, ratio in rows)[:NEAREST]
        weights = [1 / (distance + SOFT) ** 2 for distance, _ in near]
        return self.plain(work, terms) * math.exp(sum(w * ratio for w, (_, ratio) in zip(weights, near)) / sum(weights))


def judge(options, cases, programs):
    errors = []
    for name, rows in programs.items():
        family = name.split("_")[0]
        known = dict(cases)
        known.update(medians(row for other, many in programs.items() if other.split("_")[0] != family for row in many))
        table = Table(known, options.hbm, options.peak)
        asked = {}
        real = sum(us for _, us in rows)
        predicted = sum(asked.setdefault(work, table.time(work)) for work, _ in rows)
        errors.append(predicted / real - 1)
        print(f"{name:24} {errors[-1]:+7.1%} of {real / 1e3:7.2f} ms")
    print(f"median {statistics.median(map(abs, errors)):.1%}, bias {statistics.median(errors):+.1%}")


def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+)\s*(TB/s|GB/s|TFLOP/s)", text).groups()
    return float(number) * (1e9 if unit == "GB/s" else 1e12)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="?")
    parser.add_argument("programs", nargs="?")
    parser.add_argument("--base", help="a table that is made better: its rows, where nothing here was measured anew")
    parser.add_argument("--without", default="$.", help="kernels whose rows in it do not count any more, a regular expression")
    parser.add_argument("--cases", action="append", default=[], help="more of learn.py's files")
    parser.add_argument("--hbm", type=quantity, required=True, help="the machine file's gpu.hbm_bandwidth of that GPU")
    parser.add_argument("--peak", type=quantity, required=True, help="its dense bf16 peak")
    parser.add_argument("--warm", type=float, default=0.75, help="what of a case's time counts warm, as a power; the rest cold")
    parser.add_argument("--also", action="append", default=[], help="rows in the table's own form, of other measurements")
    parser.add_argument("-o", "--output")
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    cases = medians(row for path in (*filter(None, [options.operators]), *options.cases) for row in case_rows(path, options.warm))
    programs = program_rows(options.programs) if options.programs else {}
    if options.judge:
        judge(options, cases, programs)
    if not options.output:
        return
    head = read(options.programs or options.cases[0])[0]
    rows = {work: us for work, us in table_rows(options.base) if not re.search(options.without, work[0])} if options.base else {}
    rows.update(cases)
    rows.update(medians(row for many in programs.values() for row in many))
    for path in options.also:
        rows.update(table_rows(path))
    with open(options.output, "w", newline="") as file:
        file.write(f"# Kernels of PyTorch {head['torch']} on {head['gpu']}: {len(rows)} launches of cases and programs.\n"
                   "# Made by hw/pytorch/operators/table.py; models/kernels/README.md says what the columns are.\n")
        for key, value in {"hbm": options.hbm, "peak": options.peak, "base_us": BASE_US, "memory": MEMORY, "compute": COMPUTE, "nearest": NEAREST,
                           "soft": SOFT, "joined_most": JOINED_MOST, "thread_bytes": THREAD_BYTES, **{f"weight_{k}": w for k, w in WEIGHTS.items()}}.items():
            file.write(f"#: {key} {value:.6g}\n")
        for name, terms in sorted(Table(rows, options.hbm, options.peak).terms.items()):
            file.write(f"#k {name} {' '.join(f'{term:.6g}' for term in terms)}\n")
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["kernel", *WEIGHTS, "us"])
        for work in sorted(rows):
            out.writerow([*work, f"{rows[work]:.5g}"])


if __name__ == "__main__":
    main()
