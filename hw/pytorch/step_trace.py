"""From PyTorch's trace of one training step to a timeline's rows, lanes and spans. Needs no PyTorch.

What the framework calls by itself are no operations of the scenario's program: they become rows of their own, by kind and
name, behind the program's ("captured"). A call and the kernel that it launched are one execution: part 0 and part 1. The
step itself stands in the trace as the annotation "foretrace 0 0"; behind it there may be launches that are waited for,
"foretrace 1 N", which bound the clocks' difference."""

import bisect

import kineto
import spans

DEFAULT_STREAM = 7  # as CUPTI numbers the legacy default stream
STEP, BRACKET = 0, 1  # of the annotations
BRACKETS = 20
NOT_CALLED = "INVALID"  # a call that CUPTI has no name for
MEMORY_COLUMNS = ["process", "device", "at_ns", "allocated", "reserved"]
PEAK_COLUMNS = ["process", "device", "allocated", "reserved"]


def kind_of(event):
    """The kinds that `foretrace import` has (reports/capture/captured_timeline.cc)."""
    category, name = event["cat"], str(event["name"])
    if category == "gpu_memcpy":
        return "memcpy_async"
    if category == "gpu_memset":
        return "memset_async"
    if category == "kernel":
        return "nccl_kernel" if kineto.kind_of(name).startswith("nccl") else "library_kernel"
    return "synchronize" if "Synchronize" in name else "cuda_call"


def stream_name(number):
    return "default(0)" if number == DEFAULT_STREAM else f"stream {number}"


def step_of(trace):
    """The step's annotation: begin, end, thread. Of several the last one: the others warmed the profiler up."""
    begin, end, *_, thread = [one for one in spans.annotations(trace) if one[2:4] == (STEP, 0)][-1]
    return begin, end, thread


def without_brackets(trace):
    """What began until the step had ended."""
    _, ended, _ = step_of(trace)
    return trace | {"traceEvents": [one for one in trace["traceEvents"]
                                    if "ts" not in one or spans.nanoseconds(trace, one)[0] <= ended]}


def clock_error(pairs, calls):
    """Nanoseconds by which the device's clock may be off, from what cannot be: a kernel before its launch, the end of a
    cudaDeviceSynchronize before that of a kernel launched ahead of it. The tightest on either side."""
    if not pairs:
        return 0
    early = min(work[0] - call[0] for call, work in pairs)
    ends = sorted((call[0], work[1]) for call, work in pairs)
    starts, latest = [one[0] for one in ends], []
    for _, end in ends:
        latest.append(max(end, latest[-1]) if latest else end)
    late = []
    for begin, end, name in calls:
        before = bisect.bisect_left(starts, begin)
        if name == "cudaDeviceSynchronize" and before:
            late.append(end - latest[before - 1])
    return spans.clock_error([(0, early, 0, min(late))]) if late else max(0, early)


def read_step(trace):
    """What build() wants of a process: "began", "step_ns", "threads", "executions" [kind, name, call or None, work or None,
    kernel], "memory" [at, allocated, reserved], "strangers" and "clock_error_ns". A call is [begin, end, thread], work
    [begin, end, stream]; times in nanoseconds."""
    began, ended, main = step_of(trace)
    brackets = spans.brackets_of(trace, spans.device_work(trace)[0], BRACKET)
    calls, elsewhere, memory = {}, set(), []
    for event in trace["traceEvents"]:
        if event.get("name") == "[memory]" and event.get("args", {}).get("Device Type") == 1:
            at = spans.nanoseconds(trace, event)[0]
            memory.append([at, int(event["args"]["Total Allocated"]), int(event["args"]["Total Reserved"])])
        if event.get("ph") != "X" or event.get("cat") not in spans.CALLS:
            continue
        begin, end = spans.nanoseconds(trace, event)
        correlation = event.get("args", {}).get("correlation")
        if began <= begin <= ended:
            calls[correlation] = (begin, end, event)
        else:
            elsewhere.add(correlation)
    threads = [main] + list(dict.fromkeys(event["tid"] for _, _, event in calls.values() if event["tid"] != main))
    executions, launched, pairs, strangers = [], set(), [], 0
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") not in spans.DEVICE:
            continue
        correlation = event.get("args", {}).get("correlation")
        call = calls.get(correlation)
        if call is None:
            strangers += correlation not in elsewhere
            continue
        work = [*spans.nanoseconds(trace, event), event["args"].get("stream")]
        pairs.append((call, work))
        caused = None if correlation in launched else [call[0], call[1], threads.index(call[2]["tid"])]
        launched.add(correlation)  # of a graph's kernels the first one has the call
        name = str(event["name"])
        executions.append([kind_of(event), kineto.shorten(name), caused, work, name if event["cat"] == "kernel" else ""])
    for correlation, (begin, end, event) in calls.items():
        if correlation not in launched and event["name"] != NOT_CALLED:
            executions.append([kind_of(event), str(event["name"]), [begin, end, threads.index(event["tid"])], None, ""])
    executions.sort(key=lambda one: (one[2] or one[3])[0])
    plain = [(begin, end, event["name"]) for begin, end, event in calls.values()]
    memory.sort()
    before = bisect.bisect_left(memory, [began]) - 1
    within = [[max(at, began), *bytes] for at, *bytes in memory[max(0, before):] if at <= ended]
    return {"began": began, "step_ns": ended - began, "threads": len(threads), "executions": executions,
            "memory": within, "strangers": strangers,
            "clock_error_ns": spans.clock_error(brackets) if brackets else clock_error(pairs, plain)}


def build(first_op, processes):
    """Captured rows, which begin with the number `first_op`; lanes, details and spans; rows of memory. `processes`: what
    read_step() found, by process."""
    lanes, found, rows, numbers, memory = spans.Lanes(), [], [], {}, []
    start = min((one["began"] for one in processes.values()), default=0)
    for process, one in processes.items():
        count = {}
        for kind, name, call, work, kernel in one["executions"]:
            if (kind, name) not in numbers:
                numbers[kind, name] = first_op + len(rows)
                rows.append({"id": first_op + len(rows), "kind": kind, "line": 0, "label": name, "loops": [1],
                             "captured": True})
            op = numbers[kind, name]
            instance = count[op] = count.get(op, -1) + 1
            loops = rows[op - first_op]["loops"]
            loops[0] = max(loops[0], instance + 1)
            if call:
                lane = lanes.of("host_thread", "main" if call[2] == 0 else f"thread {call[2]}", process)
                found.append([op, instance, lane, call[0] - start, call[1] - start, 0, 0])
            if work:
                lane = lanes.of("stream", stream_name(work[2]), process, 0)
                found.append([op, instance, lane, max(0, work[0] - start), max(0, work[1] - start), 1,
                              lanes.detail(kernel)])
        memory += [[process, 0, at - start, *bytes] for at, *bytes in one["memory"]]
    found.sort(key=lambda span: (span[3], span[5]))
    return rows, (lanes.rows, lanes.details, found), memory
