"""spreads: how far a round's programs were off, by the class of the parameters that decide them.

The values of blind.* in a machine file (models/trust/blind.h): such that a band of them holds COVERED
of the regions' medians. A region's error is that of its classes in quadrature, each times the part
of the region's time that it decides, and of `rest`.

Where the host is known (`known`), each start is predicted with `--with host=` what was predicted for a launch over the
median launch of that start, as `simulate --host` does with a host's file; the classes of the host are printed."""

import concurrent.futures
import math
import os
import statistics

import evaluate
import known_host
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


OF_HOSTS = ("allocations", "host_calls", "host_memory")


def hosts_of(measured):
    """The median launch of each start, in us."""
    starts = {}
    for of_program in known_host.launches_of(measured).values():
        for start, us in of_program.items():
            starts.setdefault(start, []).append(us)
    return [statistics.median(us) for us in starts.values()]


def predicted(foretrace, file, machine, hosts):
    """The timeline; of known hosts the median of one for each, with what decides it on no certain host."""
    plain = predict.simulate(foretrace, file, machine)
    if not hosts:
        return plain
    factors = {f"{known_host.factor_of(plain, us):.2f}" for us in hosts}
    known = known_host.middle([predict.simulate(foretrace, file, machine, [f"--with=host={factor}x"])
                               for factor in sorted(factors)])
    for region, other in zip(plain["regions"], known["regions"]):
        region["samples_ns"] = other["samples_ns"]
    return plain


def points_of(directory, measured, foretrace, machine, most_gpus, known=False):
    starts = {}
    for row in measured:
        starts.setdefault(tuple(row[key] for key in evaluate.KEY), []).append(
            float(row["median_us"]))
    programs = [row for row in read_rows(directory / "programs.csv")
                if int(row["gpus"]) <= most_gpus]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hosts = hosts_of(measured) if known else []
        runs = [pool.submit(predicted, foretrace, directory / row["file"], machine, hosts)
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


def spreads(rounds, foretrace, machine, most_gpus=8, known=False):
    """Lines for a machine file, from (directory, its measured.csv) of one or several rounds."""
    points = [point for directory, measured in rounds
              for point in points_of(directory, read_rows(measured), foretrace, machine, most_gpus,
                                  known)]
    found = fit(points)
    counts = {name: sum(shares.get(name, 0) >= 0.1 for _, shares in points) for name in found}
    if known:
        found = {f"{name}_known": found[name] for name in OF_HOSTS if name in found}
        counts = {f"{name}_known": count for name, count in counts.items()}
    return "".join(f"  blind.{name}: {{value: {value:.3f}, source: blind_round, "
                   f"range: {counts[name] or len(points)} regions}}\n"
                   for name, value in sorted(found.items(), key=lambda one: one[0] != "rest"))
