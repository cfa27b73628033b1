"""Compositions of an iteration, timed one by one: what its cost is learned from."""

import statistics
import time

import torch

DECODE_REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DECODE_CONTEXTS = (128, 512, 2048, 8192)
CHUNKS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
CACHED = (0, 2048, 8192)
MIXED = ((8, 512, 256), (32, 1024, 512), (64, 1024, 1984), (128, 512, 1920), (16, 4096, 2032))  # requests, context, chunk
TRACED = {(1, 512, 0, 0), (64, 2048, 0, 0), (128, 512, 0, 0), (0, 0, 512, 0), (0, 0, 2048, 2048), (64, 1024, 1984, 0)}


def compositions(max_length):
    """(requests that decode, context of each, tokens of a chunk, its cached context)."""
    for n in DECODE_REQUESTS:
        for context in DECODE_CONTEXTS:
            if context <= max_length:
                yield n, context, 0, 0
    for chunk in CHUNKS:
        for cached in CACHED:
            if chunk + cached <= max_length:
                yield 0, 0, chunk, cached
    for n, context, chunk in MIXED:
        yield n, context, chunk, 0


def rows_of(composition, arena):
    """Requests one behind the other in the arena; None where it is too small."""
    n, context, chunk, cached = composition
    if n * context + chunk + cached > arena:
        return None
    rows = [([1], context - 1, index * context) for index in range(n)]
    return rows + ([([1] * chunk, cached, n * context)] if chunk else [])


def timed(runner, rows, repeats, eager):
    gpu, wall = [], []
    for _ in range(2):
        runner.run(rows, eager)
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        _, gpu_ns, graph, called = runner.run(rows, eager)
        wall.append((time.perf_counter_ns() - begin, called - begin))
        gpu.append(gpu_ns or 0)
    return {"gpu_ns": round(statistics.median(gpu)), "gpu_min_ns": min(gpu), "wall_ns": round(statistics.median(w for w, _ in wall)),
            "called_ns": round(statistics.median(c for _, c in wall)), "graph": graph}


def kernels(runner, rows, eager):
    """[name, calls, nanoseconds] of the kernels of one iteration, in the order of their first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as trace:
        runner.run(rows, eager)
        torch.cuda.synchronize()
    found = {}
    for event in sorted((e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA),
                        key=lambda e: e.time_range.start):
        row = found.setdefault(event.name[:160], [0, 0.0])
        row[0] += 1
        row[1] += event.time_range.elapsed_us() * 1e3
    return [[name, calls, round(ns)] for name, (calls, ns) in found.items()]


def measure(runner, max_length, deadline_s, log):
    """Rows of all compositions, until the deadline; the shorter ones more often."""
    found = []
    for composition in compositions(max_length):
        rows = rows_of(composition, runner.arena)
        if rows is None or time.monotonic() > deadline_s:
            found.append({"composition": composition, "skipped": "memory" if rows is None else "time"})
            continue
        for eager in ((False, True) if composition[2] == 0 and composition[1] == 512 else (False,)):
            try:
                row = {"composition": composition, "eager": eager} | timed(runner, rows, 7, eager)
            except RuntimeError as error:  # one composition that finds no memory must not end the others
                row = {"composition": composition, "eager": eager, "failed": f"{type(error).__name__}: {error}"[:300]}
                torch.cuda.empty_cache()
            if "gpu_ns" in row and composition in TRACED and runner.cuda:
                row["kernels"] = kernels(runner, rows, eager)
            found.append(row)
            log(row)
    return found
