"""spreads: how far a round's programs were off, by the class of the parameters that decide them.

The values of blind.* in a machine file (models/trust/blind.h): such that a band of them holds COVERED
of the regions' medians. A region's error is that of its classes in quadrature, each times the part
of the region's time that it decides, and of `rest`."""

import concurrent.futures
import math
import os
import statistics

import evaluate
import predict
from generate import read_rows

# Of the rounds that it learns from: 89 to 98 % of rounds 33 to 36 lay in bands made for 88.
COVERED = 0.85
# As kClasses of models/trust/blind.cc: the first prefix that fits decides.
CLASSES = [("host.malloc", "allocations"), ("host.free", "allocations"),
           ("host.pool", "allocations"), ("host.host_", "allocations"),
           ("host.fill", "host_memory"), ("host.copy", "host_memory"),
           ("host.touch", "host_memory"), ("host.", "host_calls"), ("pytorch.", "host_calls"),
           ("nccl.host", "host_calls"), ("gpu.host_func", "host_functions"),
           ("copy.pageable", "host_memory"), ("copy.small_pageable", "host_memory"),
           ("copy.fresh", "host_memory"), ("copy.d2d", "memory_kernels"), ("copy.", "copies"),
           ("node.host_link", "copies"), ("gpu.sm_count", None), ("gpu.l2", "memory_kernels"),
           ("gpu.hbm", "memory_kernels"), ("gpu.", "latencies"), ("kernel.base", "latencies"),
           ("kernel.spin_overhead", "latencies"), ("kernel.", "memory_kernels"),
           ("products.", "products"), ("gemm.", "products"), ("nccl.net", None),
           ("nccl.tree", None), ("nccl.", "collectives"), ("nvlink.", "collectives")]
STEPS = (0.5, 0.8, 0.95, 1.05, 1.25, 2)
LEAST, MOST = 0.003, 1.0


def class_of(parameter):
    return next((name for prefix, name in CLASSES if parameter.startswith(prefix)), None)


def shares_of(region):
    shares = {}
    for one in region.get("decided_by", []):
        name = class_of(one["parameter"])
        if name is not None:
            shares[name] = shares.get(name, 0) + abs(one["share"])
    return shares


def width(shares, spreads):
    squares = spreads["rest"] ** 2 + sum((part * spreads[name]) ** 2
                                         for name, part in shares.items())
    return math.sqrt(squares)


def fit(points):
    """points: (error as |log(predicted / measured)|, shares by class). The likeliest spreads when
    errors fall off as exp(-|error| / width), scaled so that COVERED of them lie within."""
    names = sorted({name for _, shares in points for name in shares})
    spreads = dict.fromkeys(["rest", *names], 0.05)

    def unlikely(values):
        return sum(math.log(w) + error / w for error, w in
                   ((error, width(shares, values)) for error, shares in points))

    best, improved = unlikely(spreads), True
    while improved:
        improved = False
        for name in spreads:
            for step in STEPS:
                tried = {**spreads, name: min(MOST, max(LEAST, spreads[name] * step))}
                value = unlikely(tried)
                if value < best - 1e-6:
                    best, spreads, improved = value, tried, True
    scale = evaluate.percentile([error / width(shares, spreads) for error, shares in points],
                                COVERED)
    return {name: value * scale for name, value in spreads.items()}


def points_of(directory, measured, foretrace, machine, most_gpus):
    starts = {}
    for row in measured:
        starts.setdefault(tuple(row[key] for key in evaluate.KEY), []).append(
            float(row["median_us"]))
    programs = [row for row in read_rows(directory / "programs.csv")
                if int(row["gpus"]) <= most_gpus]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(predict.simulate, foretrace, directory / row["file"], machine)
                for row in programs]
    points = []
    for row, run in zip(programs, runs):
        for region in run.result()["regions"]:
            key = (row["program"], region["name"], str(region["instance"]), str(region["process"]))
            if key not in starts or region["process"] != 0:
                continue
            us = region["samples_ns"][0] / 1000 / region["per"]
            error = abs(math.log(us / statistics.median(starts[key])))
            points.append((error, shares_of(region)))
    return points


def spreads(rounds, foretrace, machine, most_gpus=8):
    """Lines for a machine file, from (directory, its measured.csv) of one or several rounds."""
    points = [point for directory, measured in rounds
              for point in points_of(directory, read_rows(measured), foretrace, machine, most_gpus)]
    found = fit(points)
    counts = {name: sum(shares.get(name, 0) >= 0.1 for _, shares in points) for name in found}
    return "".join(f"  blind.{name}: {{value: {value:.3f}, source: blind_round, "
                   f"range: {counts[name] or len(points)} regions}}\n"
                   for name, value in sorted(found.items(), key=lambda one: one[0] != "rest"))
