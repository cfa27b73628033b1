#!/usr/bin/env python3
"""Runs steps of libraries' models on this GPU: time, host time, memory, and one step's launches.

    python3 hw/pytorch/operators/programs_run.py -o OUT.jsonl.gz [--seconds 120] [--only REGEX]
"""

import argparse
import gc
import gzip
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scenarios" / "pytorch"))
from foretrace.reference_loop import host_speed  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from operator_trace import Trace  # noqa: E402


def times(run, steps=6):
    """(seconds of a step in a row of them, seconds until a step's call returns on an idle GPU)."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        run()
    torch.cuda.synchronize()
    whole = (time.perf_counter() - begin) / steps
    issue = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        issue.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return whole, statistics.median(issue)


def one(name, folder):
    device = torch.device("cuda")
    torch.cuda.reset_peak_memory_stats()
    run = PROGRAMS[name](device)
    for _ in range(3):
        run()
    whole, issue = times(run)
    memory = torch.cuda.memory_stats()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        run()
        torch.cuda.synchronize()
        with record_function(f"case:{name}"):
            run()
        torch.cuda.synchronize()
    path = os.path.join(folder, "trace.json")
    profiler.export_chrome_trace(path)
    trace = Trace(path)
    launches = trace.launches().get(0, [])
    begin = min((one[6] for one in launches), default=0)
    busy, last = 0.0, 0.0
    for start, duration in sorted((one[6], one[7]) for one in launches):
        busy += max(0.0, start + duration - max(last, start))
        last = max(last, start + duration)
    operators, kernels, rows = {}, {}, []
    for made_by, kernel, grid, block, category, size, start, duration, called, stream in launches:
        operator = operators.setdefault(json.dumps(made_by), len(operators))
        kernel = kernels.setdefault(kernel, len(kernels))
        rows.append([operator, kernel, grid, block, category, size, round(start - begin, 3), round(duration, 3), stream])
    window = trace.windows[0]
    return {"program": name, "step_s": whole, "issue_s": issue, "busy_us": round(busy, 1), "traced_host_us": round(window[1] - window[0], 1),
            "allocated_peak": memory["allocated_bytes.all.peak"], "reserved_peak": memory["reserved_bytes.all.peak"],
            "operators": [json.loads(o) for o in operators], "kernels": list(kernels), "launches": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    with gzip.open(options.output, "wt", compresslevel=6) as out, tempfile.TemporaryDirectory() as folder:
        out.write(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "host": host_speed()}) + "\n")
        for name in PROGRAMS:
            if not re.search(options.only, name) or time.monotonic() > end:
                continue
            try:
                out.write(json.dumps(one(name, folder), separators=(",", ":")) + "\n")
            except Exception as error:  # a library's own refusal ends its program alone
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            gc.collect()
            torch.cuda.empty_cache()
            print(name, round(end - time.monotonic()), "s left", file=sys.stderr)


if __name__ == "__main__":
    main()
