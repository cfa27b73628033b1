#!/usr/bin/env python3
"""What PyTorch's operators on the CPU take by size and threads: cpu_operators.py > operators.csv

A row is the median, the tenth and the ninetieth percentile of one operator's calls in us; `bytes` and `flops` are
what the operator reads and writes, and computes. About 40 s on 16 cores."""

import csv
import os
import statistics
import sys
import time

import torch

SIZES = [10_000, 100_000, 1_000_000, 10_000_000, 64_000_000]
LEAST_S, LEAST_CALLS, MOST_CALLS = 0.04, 4, 50


def operators(n):
    """(name, call, bytes, flops): float32, outputs written in place where that can be."""
    a, b, c = torch.rand(n), torch.rand(n), torch.empty(n)
    yield "add", lambda: torch.add(a, b, out=c), 12 * n, n
    yield "copy", lambda: c.copy_(a), 8 * n, 0
    yield "sum", lambda: a.sum(), 4 * n, n
    yield "exp", lambda: torch.exp(a, out=c), 8 * n, 10 * n
    yield "add, new output", lambda: a + b, 12 * n, n
    rows = a.view(-1, 1000)
    yield "softmax", lambda: torch.softmax(rows, 1), 8 * n, 12 * n
    if n <= 10_000_000:
        yield "uniform_", lambda: c.uniform_(), 4 * n, 0
        index = torch.randint(0, rows.shape[0], (rows.shape[0],))
        yield "index_select of rows", lambda: rows.index_select(0, index), 8 * n, 0
    side = int(n ** 0.5)
    if side <= 3200:
        x, y, z = torch.rand(side, side), torch.rand(side, side), torch.empty(side, side)
        yield "mm", lambda: torch.mm(x, y, out=z), 12 * side * side, 2 * side ** 3


def times_of(call):
    call(), call()
    seconds, end = [], time.perf_counter() + LEAST_S
    while len(seconds) < LEAST_CALLS or (time.perf_counter() < end and len(seconds) < MOST_CALLS):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return sorted(1e6 * one for one in seconds)


def main():
    out = csv.writer(sys.stdout)
    out.writerow(["operator", "elements", "threads", "bytes", "flops", "median_us", "p10_us", "p90_us"])
    cores = len(os.sched_getaffinity(0))
    for threads in sorted({1, 2, 4, 8, cores}):
        if threads > cores:
            continue
        torch.set_num_threads(threads)
        for n in SIZES:
            for name, call, moved, flops in operators(n):
                us = times_of(call)
                out.writerow([name, n, threads, moved, flops, f"{statistics.median(us):.2f}",
                              f"{us[len(us) // 10]:.2f}", f"{us[len(us) * 9 // 10]:.2f}"])
                sys.stdout.flush()
    print(f"torch {torch.__version__}, {cores} cores, {torch.__config__.parallel_info().splitlines()[0]}",
          file=sys.stderr)


if __name__ == "__main__":
    main()
