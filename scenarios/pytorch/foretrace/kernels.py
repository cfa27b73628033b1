"""A profiled step of a real GPU as lines of JSON: what ran on the GPU and which calls of the host started it, in the host's order.

{"k":"name","i":0,"n":"void at::native::..."}         a kernel's name
{"k":"op","i":3,"n":"aten::mm"}                        an operation's name
{"k":"launch","n":0,"g3":[..],"b3":[..],"sm":0,"s":7,"t":ns,"d":ns,"ct":ns,"cd":ns,"op":3,"th":0}
{"k":"copy","dir":"h2d","n":bytes,...}  {"k":"memset","n":bytes,...}   {"k":"call","f":"cudaStreamSynchronize","ct":ns,"cd":ns}

t, d: begin and length on the GPU; ct, cd: of the host's call; all from the begin of the step; th: the host's threads in the order in which they are met;
oi: which of the step's operations it was; f: of a graph's kernels, which share one call."""

import gzip
import json
import os
import tempfile

STEP = "foretrace.step"
HOST_CALLS = ("cuda_runtime", "cuda_driver")
SILENT = ("cudaGetDevice", "cudaGetLastError", "cudaPeekAtLastError", "cudaStreamIsCapturing", "cudaDeviceGetAttribute", "cudaStreamGetCaptureInfo")


def read_trace(profiler):
    """Events of the profiler's trace."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]
    finally:
        os.unlink(path)


def rows(events):
    """Lines of the step, and a summary: times in ms of what ran on the GPU."""
    step = next((e for e in events if e.get("name") == STEP and e.get("cat") == "user_annotation"), None)
    begin = step["ts"] if step else 0
    end = begin + step["dur"] if step else float("inf")
    on_gpu = {}
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            on_gpu.setdefault(e["args"].get("correlation"), []).append(e)
    calls = sorted((e for e in events if e.get("cat") in HOST_CALLS and begin <= e["ts"] <= end), key=lambda e: e["ts"])
    ops = _innermost(events, calls)
    lines, names, op_names, threads, busy = [], {}, {}, {}, []

    def number(table, kind, text):
        if text not in table:
            table[text] = len(table)
            lines.append({"k": kind, "i": table[text], "n": text})
        return table[text]

    for call, op in zip(calls, ops):
        host = {"ct": _ns(call["ts"] - begin), "cd": _ns(call["dur"])}
        thread = threads.setdefault(call["tid"], len(threads))
        if thread:
            host["th"] = thread
        if op:
            host["op"], host["oi"] = number(op_names, "op", op[0]), op[1]
        if "GraphLaunch" in call["name"]:
            host["f"] = call["name"]
        work = on_gpu.pop(call["args"].get("correlation"), [])
        if not work and not call["name"].startswith(SILENT):
            lines.append({"k": "call", **host, "f": call["name"]})
        for e in work:
            lines.append({**_work(e, number, names), "s": e["args"].get("stream", e["tid"]), "t": _ns(e["ts"] - begin), "d": _ns(e["dur"]), **host})
            busy.append((e["ts"], e["ts"] + e["dur"], e["cat"]))
    kernels = [(a, b) for a, b, cat in busy if cat == "kernel"]
    return lines, {"gpu_busy_ms": round(union([(a, b) for a, b, _ in busy]) / 1e3, 4), "kernels_ms": round(union(kernels) / 1e3, 4),
                   "kernels": len(kernels), "gpu_span_ms": round((max(b for _, b, _ in busy) - min(a for a, _, _ in busy)) / 1e3, 4) if busy else 0,
                   "calls": len(calls)}


def _ns(us):
    return round(us * 1000)


def _work(e, number, names):
    a = e["args"]
    if e["cat"] == "kernel":
        return {"k": "launch", "n": number(names, "name", e["name"]), "g3": a.get("grid"), "b3": a.get("block"), "sm": a.get("shared memory", 0)}
    if e["cat"] == "gpu_memset":
        return {"k": "memset", "n": a.get("bytes")}
    return {"k": "copy", "dir": e["name"], "n": a.get("bytes")}


def _innermost(events, calls):
    """For each call the name and the number of the operation around it, on its thread."""
    by_thread = {}
    for i, e in enumerate(events):
        if e.get("cat") in ("cpu_op", "user_annotation") and e.get("name") != STEP:
            by_thread.setdefault(e["tid"], []).append((e, i))
    found = [None] * len(calls)
    for thread, ops in by_thread.items():
        ops.sort(key=lambda one: (one[0]["ts"], -one[0]["dur"]))
        stack, next_op = [], 0
        for i, call in enumerate(calls):
            if call["tid"] != thread:
                continue
            while next_op < len(ops) and ops[next_op][0]["ts"] <= call["ts"]:
                stack.append(ops[next_op])
                next_op += 1
            while stack and stack[-1][0]["ts"] + stack[-1][0]["dur"] < call["ts"]:
                stack.pop()
            found[i] = (stack[-1][0]["name"], stack[-1][1]) if stack else None
    return found


def union(intervals):
    """Length of the union of intervals."""
    total, until = 0.0, float("-inf")
    for a, b in sorted(intervals):
        total += max(b - max(a, until), 0)
        until = max(until, b)
    return total


def read(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write(path, lines):
    with gzip.open(path, "wt", compresslevel=6) as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
