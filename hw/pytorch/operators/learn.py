#!/usr/bin/env python3
"""Times PyTorch's operators on this GPU, kernel by kernel: what models/kernels/ is learned from.

    python3 hw/pytorch/operators/learn.py -o OUT.jsonl.gz [--seconds 200] [--only REGEX] [--seed 1]

Each case runs warm (its data were just used) and cold (128 MiB went through level 2 between two runs). Cases are drawn
in random order until the time is up. One JSON line a case: its launches with operator, kernel, grid, block and both medians.
"""

import argparse
import concurrent.futures
import gzip
import json
import multiprocessing
import os
import random
import re
import statistics
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

import cases
import cases_big
import cases_more
import cases_rows
from operator_trace import Trace

FAMILIES = (cases.pointwise, cases.mixed_and_broadcast, cases.views, cases_rows.reductions, cases_rows.norms, cases_rows.losses_and_rows,
            cases_big.products, cases_big.attention, cases_big.convolutions, cases_big.optimizers, *cases_more.FAMILIES)
REPEATS, GROUP = 3, 24
READERS, KEPT = 6, 32 << 30  # processes that read traces; bytes that the allocator may keep between groups


def chosen(options):
    every = []
    draw = random.Random(options.seed)
    for family in FAMILIES:
        found = [case for case in family() if re.search(options.only, case[0])]
        draw.shuffle(found)
        # a family's cases are spread evenly over the time
        every += [((i + draw.random()) / max(1, len(found)), case) for i, case in enumerate(found)]
    return [case for _, case in sorted(every, key=lambda one: one[0])]


def profile_group(group, device, flush, path):
    """Runs the cases; their trace lies at path."""
    runs = {}
    for name, make in group:
        try:
            run = make(device)
            run()
            run()
            runs[name] = run
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(f"{name}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        for name, run in runs.items():
            for kind in ("warm", "cold"):
                run()
                for _ in range(REPEATS):
                    if kind == "cold":
                        flush.zero_()
                    with record_function(f"case:{name}|{kind}"):
                        run()
                    torch.cuda.synchronize()
    profiler.export_chrome_trace(path)


def lines_of(path):
    """A line for each case of a trace, which goes away. In another process: the GPU need not wait for it."""
    trace = Trace(path)
    os.unlink(path)
    found = {}
    launches = trace.launches()
    for window, (_, _, label) in enumerate(trace.windows):
        name, kind = label.split("|")
        found.setdefault(name, {}).setdefault(kind, []).append(launches.get(window, []))
    made = [row(name, kinds) for name, kinds in found.items()]
    return [json.dumps(one, separators=(",", ":")) for one in made if one]


def row(name, kinds):
    warm, cold = kinds.get("warm", []), kinds.get("cold", [])
    count = len(warm[0]) if warm else 0
    if not count or any(len(one) != count for one in warm + cold):
        return None
    out = []
    for i in range(count):
        first = warm[0][i]
        out.append([first[0], first[1], first[2], first[3], first[4], first[5],
                    round(statistics.median(one[i][7] for one in warm), 3), round(statistics.median(one[i][7] for one in cold), 3)])
    return {"case": name, "random_gradients": True, "launches": out}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    device = torch.device("cuda")
    flush = torch.empty(128 << 20, dtype=torch.uint8, device=device)
    todo = chosen(options)
    done, read = 0, []
    with (gzip.open(options.output, "wt", compresslevel=6) as out, tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ProcessPoolExecutor(READERS, multiprocessing.get_context("spawn")) as readers):
        out.write(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "cases": len(todo)}) + "\n")
        while todo and time.monotonic() < end:
            group, todo = todo[:GROUP], todo[GROUP:]
            path = os.path.join(folder, f"{len(todo)}.json")
            profile_group(group, device, flush, path)
            read.append(readers.submit(lines_of, path))
            if torch.cuda.memory_reserved() > KEPT:
                torch.cuda.empty_cache()
        for group in read:
            for line in group.result():
                out.write(line + "\n")
                done += 1
    print(f"{done} cases, {len(todo)} left", file=sys.stderr)


if __name__ == "__main__":
    main()
