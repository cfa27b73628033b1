"""From PyTorch's trace of one pass to a timeline's lanes and spans. Needs no PyTorch.

Each call stands in the trace as an annotation, "foretrace OP INSTANCE". What a device did belongs to the annotation around the
CUDA call that caused it; everything of a graph belongs to its launch."""

import bisect
import re

_NAME = re.compile(r"foretrace (\d+) (\d+)")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


def nanoseconds(trace, event):
    """Begin and end."""
    base = int(trace.get("baseTimeNanoseconds", 0))
    begin = base + round(float(event["ts"]) * 1000)
    return begin, begin + round(float(event.get("dur", 0)) * 1000)


def annotations(trace):
    """[(begin, end, op, instance, thread)] in the order of begin."""
    found = []
    for event in trace["traceEvents"]:
        match = event.get("ph") == "X" and event.get("cat") in ("user_annotation", "cpu_op") and \
            _NAME.fullmatch(str(event.get("name", "")))
        if match:
            found.append((*nanoseconds(trace, event), int(match[1]), int(match[2]), event.get("tid")))
    return sorted(found)


def device_work(trace):
    """[(begin, end, op, instance, kernel)]: what devices did, by call; and how much no call caused."""
    by_thread = {}
    for begin, end, op, instance, thread in annotations(trace):
        by_thread.setdefault(thread, []).append((begin, end, op, instance))
    caused = {}
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") not in CALLS:
            continue
        within = by_thread.get(event.get("tid"), [])
        begin, _ = nanoseconds(trace, event)
        at = bisect.bisect_right(within, (begin, float("inf"))) - 1
        if at >= 0 and within[at][1] >= begin:
            caused[event.get("args", {}).get("correlation")] = within[at][2:]
    found, strangers = [], 0
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") not in DEVICE:
            continue
        owner = caused.get(event.get("args", {}).get("correlation"))
        if owner is None:
            strangers += 1
            continue
        kernel = str(event["name"]) if event["cat"] == "kernel" else ""
        found.append((*nanoseconds(trace, event), *owner, kernel))
    return sorted(found), strangers


def brackets_of(trace, work, bracket):
    """[(call begins, kernel begins, kernel ends, wait ends)]: launches that were waited for, annotated as operation `bracket`.
    `work` is device_work()'s."""
    begun = {instance: (begin, end) for begin, end, op, instance, _ in work if op == bracket}
    return [(begin, *begun[instance], end) for begin, end, op, instance, _ in annotations(trace)
            if op == bracket and instance in begun]


def clock_error(brackets):
    """How far the devices' clocks may be from the host's: of launch-and-wait brackets (call begins, kernel begins, kernel ends,
    wait ends) the tightest."""
    return max(0, min((max(begun - called, waited - ended) for called, begun, ended, waited in brackets), default=0))


class Lanes:
    def __init__(self):
        self.rows, self.numbers, self.kernels = [], {}, {"": 0}
        self.details = [{"low_factor": 1.0, "high_factor": 1.0, "parameters": "fit"}]

    def of(self, kind, name, process, device=None):
        key = (kind, name, process, device)
        if key not in self.numbers:
            self.numbers[key] = len(self.rows)
            row = {"id": len(self.rows), "kind": kind, "name": name, "node": 0, "process": process}
            self.rows.append(row if device is None else row | {"device": device})
        return self.numbers[key]

    def detail(self, kernel):
        if kernel not in self.kernels:
            self.kernels[kernel] = len(self.details)
            self.details.append({"kernel": kernel, **self.details[0]})
        return self.kernels[kernel]


def build(program, processes):
    """Lanes, details and spans of all processes. Of each: its "process", "began" (ns), "calls" (begin, end, op, instance, name
    of the thread), "work" (begin, end, op, instance, kernel) and "streams": by "OP INSTANCE" a number."""
    lanes, spans = Lanes(), []
    start = min(one["began"] for one in processes)
    for one in processes:
        process = one["process"]
        for begin, end, op, instance, thread in one["calls"]:
            lane = lanes.of("host_thread", thread, process)
            spans.append([op, instance, lane, max(0, begin - start), max(0, end - start), 0, 0])
        parts = {}
        for begin, end, op, instance, kernel in one["work"]:
            number = one["streams"].get(f"{op} {instance}")
            if number is None:
                continue
            stream = program.streams[number]
            lane = lanes.of("stream", stream["name"], process, stream["device"])
            parts[op, instance] = parts.get((op, instance), 0) + 1
            spans.append([op, instance, lane, max(0, begin - start), max(0, end - start), parts[op, instance],
                          lanes.detail(kernel)])
    spans.sort(key=lambda span: (span[3], span[5]))
    return lanes.rows, lanes.details, spans
