"""measured.timeline.json (reports/timeline.schema.json) of a measured step: `foretrace compare` joins it call by call with the same step, captured.

Needs no PyTorch. From the lines of `kernels` (of the profiled step) and the untraced steps' times. All rows but the region's are `captured`: what ran, by
its kernel's name; `variant` is the operation inside which the host called it. Kernels of a closed library that one operation called are parts of one
execution, as are those of a graph."""

import json
import re

from .whole import write_whole

PRODUCER = "foretrace measure 0.1.0"
STEP_HASH = "pytorch-step"  # reports/timeline/origin.h: joined by its calls, not by its program
DEFAULT_STREAM = 7  # as CUPTI numbers the legacy default stream
CLOSED = re.compile(r"nvjet|xmma|cutlass|gemm|gemv|cudnn|cublas|split_?k|implicit_convolve|winograd|wgrad|dgrad|\bsm\d\d_|\bfft", re.I)
PYTORCHS = re.compile(r"at::native|pytorch_flash|PyTorchMemEff|fmha_cutlass|triton_|c10::")
NOISE = ("void ", "at::native::", "(anonymous namespace)::", "c10::", "at::")


def is_closed(kernel):
    """A kernel of cuBLAS or cuDNN, of which one call may launch several."""
    return bool(CLOSED.search(kernel)) and not PYTORCHS.search(kernel)


def shorten(name, most=110):
    for noise in NOISE:
        name = name.replace(noise, "")
    return name if len(name) <= most else name[: most - 3] + "..."


def direction(text):
    """"h2d pinned" of CUPTI's "Memcpy HtoD (Pinned -> Device)"."""
    way = next((short for long, short in (("HtoD", "h2d"), ("DtoH", "d2h"), ("DtoD", "d2d"), ("PtoP", "p2p"), ("HtoH", "h2h")) if long in text), "")
    memory = " pinned" if "Pinned" in text else " pageable" if "Pageable" in text else ""
    return (way + (memory if way in ("h2d", "d2h", "h2h") else "")) or text


class Executions:
    """The lines of one rank's step as [kind, label, variant, bytes, call or None, [work...]]; a call is [begin, end, thread], work [begin, end, stream, kernel]."""

    def __init__(self, lines):
        self.names, self.ops, self.found = {}, {}, []
        self.last = None  # what a closed kernel of the same operation joins
        for line in lines:
            if line["k"] == "name":
                self.names[line["i"]] = line["n"]
            elif line["k"] == "op":
                self.ops[line["i"]] = line["n"]
            else:
                self._add(line)

    def _add(self, line):
        op = self.ops.get(line.get("op"), "")
        call = [line["ct"], line["ct"] + line["cd"], line.get("th", 0)]
        if line["k"] == "call":
            waits = "Synchronize" in line["f"]
            self.found.append(["synchronize" if waits else "cuda_call", line["f"], op, 0, call, []])
            return
        kernel = self.names[line["n"]] if line["k"] == "launch" else ""
        work = [line["t"], line["t"] + line["d"], line["s"], kernel]
        if line.get("f", "").startswith(("cudaGraphLaunch", "cuGraphLaunch")):
            same = self.found and self.found[-1][0] == "graph_launch" and self.found[-1][4] == call
            if not same:
                self.found.append(["graph_launch", line["f"], op, 0, call, []])
            self.found[-1][5].append(work)
            return
        if line["k"] == "launch":
            one = ["nccl_kernel" if kernel.startswith("ncclDevKernel") else "library_kernel", shorten(kernel), op, 0, call, [work]]
            key = line.get("oi") if is_closed(kernel) else None
            if key is not None and self.last and self.last[0] == key:
                self.last[1][5].append(work)
                return
            if key is not None:
                self.last = (key, one)
            self.found.append(one)
        elif line["k"] == "memset":
            self.found.append(["memset_async", "memset", op, line.get("n") or 0, call, [work]])
        else:
            way = direction(line["dir"])
            self.found.append(["memcpy_async", way, op, line.get("n") or 0, call, [work]])


def _stream(number):
    return "default(0)" if number == DEFAULT_STREAM else f"stream {number}"


def _region(name, result):
    """The untraced steps: turns of steps that follow each other, with one wait behind them; traced_ns: as long as so many of the profiled one."""
    per = result.get("steps_of_turn", 4)
    turns = result.get("turns_ms") or ([result["free_running_ms"] * per] if result.get("free_running_ms") else [])
    row = {"name": name, "op": 0, "instance": 0, "process": result["rank"], "per": per, "samples_ns": [round(t * 1e6) for t in turns], "low_factor": 1.0,
           "high_factor": 1.0}
    if result.get("profiled_ms"):
        row["traced_ns"] = round(result["profiled_ms"] * 1e6) * per
    return row


def document(name, machine, results, lines, region="step"):
    """`results`: what each rank measured; `lines`: {rank: lines of its profiled step}."""
    results = sorted(results, key=lambda r: r["rank"])
    ops = [{"id": 0, "kind": "region", "line": 0, "label": region}]
    numbers, lanes, lane_numbers, details, detail_numbers, spans = {}, [], {}, [{"low_factor": 1.0, "high_factor": 1.0, "parameters": "fit"}], {"": 0}, []

    def lane(kind, text, rank, device=None):
        key = (kind, text, rank)
        if key not in lane_numbers:
            lane_numbers[key] = len(lanes)
            lanes.append({"id": len(lanes), "kind": kind, "name": text, "node": 0, "process": rank, **({} if device is None else {"device": device})})
        return lane_numbers[key]

    def detail(kernel):
        if kernel not in detail_numbers:
            detail_numbers[kernel] = len(details)
            details.append({"kernel": kernel, "low_factor": 1.0, "high_factor": 1.0, "parameters": "fit"})
        return detail_numbers[kernel]

    for rank in sorted(lines):
        count = {}
        for kind, label, variant, size, call, work in Executions(lines[rank]).found:
            key = (kind, label, variant, size)
            if key not in numbers:
                numbers[key] = len(ops)
                ops.append({"id": len(ops), "kind": kind, "line": 0, "label": label, "loops": [1], "captured": True, **({"variant": variant} if variant else {}),
                            **({"size_bytes": size} if size else {})})
            op = numbers[key]
            instance = count[op] = count.get(op, -1) + 1
            ops[op]["loops"][0] = max(ops[op]["loops"][0], instance + 1)
            spans.append([op, instance, lane("host_thread", "main" if call[2] == 0 else f"thread {call[2]}", rank), call[0], call[1], 0, 0])
            for part, (begin, end, stream, kernel) in enumerate(work, 1):
                spans.append([op, instance, lane("stream", _stream(stream), rank, 0), begin, end, part, detail(kernel)])
    spans.sort(key=lambda s: (s[3], s[5]))
    regions = [_region(region, r) for r in results if r["outcome"] == "measured"]
    regions = [row for row in regions if row["samples_ns"]]
    failed = [f"rank {r['rank']}: {r.get('error', r['outcome'])}" for r in results if r["outcome"] != "measured"]
    versions = {k: str(machine[k]) for k in ("torch", "nccl", "cudnn", "python", "script_digest") if machine.get(k)}
    peaks = [[r["rank"], 0, *_peaks(r["memory"])] for r in results
             if r["outcome"] == "measured" and len(r.get("memory", {}).get("allocated", [])) == 3]
    made = {"schema_version": 1, "kind": "timeline", "origin": "measured", "scenario": {"name": name, "file": "", "program_hash": STEP_HASH},
            "machine": f"{len(results)} x {machine.get('gpu', 'GPU')}", "producer": PRODUCER, "versions": versions, "clock_error_bound_ns": 0,
            "outcome": {"kind": "failed" if failed else "completed", "explanation": failed}, "ops": ops, "lanes": lanes, "regions": regions, "details": details,
            "span_columns": ["op", "instance", "lane", "begin_ns", "end_ns", "part", "detail"], "spans": spans, "flow_kinds": [],
            "flow_columns": ["kind", "from_span", "to_span"], "flows": []}
    if peaks:
        made |= {"memory_peak_columns": ["process", "device", "allocated", "reserved"], "memory_peaks": peaks}
    return made


def _peaks(memory):
    """Allocated and reserved at a step's peak, without what scripts before left in the process."""
    return [memory[kind][1] - left for kind, left in zip(("allocated", "reserved"), memory.get("left_over", [0, 0]))]


def write(path, made):
    """The file appears whole or not at all."""
    write_whole(path, json.dumps(made, separators=(",", ":")) + "\n")
