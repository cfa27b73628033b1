"""A profile of one step on the CPU alone as operations: name, arguments, phase, module."""

import json
import os
import tempfile
from typing import NamedTuple, Optional

from .modules import PREFIX

TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
         "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64", "complex128": "c128",
         "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
ENGINE = "autograd::engine::evaluate_function: "


class Operation(NamedTuple):
    begin: int  # ns since 1970
    end: int
    thread: int  # the profiler's number
    name: str
    arguments: list
    phase: str
    module: Optional[str]
    depth: int


def start():
    """A profiler that has begun."""
    from torch.profiler import ProfilerActivity, profile
    profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True, acc_events=True)
    profiler.__enter__()
    return profiler


def stop(profiler):
    """Ends it; the operations, each thread's in order, parents before what they contain; and of collectives their process group's name by begin."""
    profiler.__exit__(None, None, None)
    results = profiler.profiler.kineto_results
    concrete, groups = {}, {}
    collectives = False
    for event in results.events():
        values = event.concrete_inputs()
        if values:
            concrete.setdefault((event.name(), event.start_ns()), values)
        if event.name() == "record_param_comms":
            collectives = True
    if collectives:
        groups = group_names(profiler)
    operations = []
    for root in results.experimental_event_tree():
        _walk(root, concrete, _Context("other", None, 0, False), operations)
    operations.sort(key=lambda o: (o.begin, o.depth))
    return operations, groups


def group_names(profiler):
    """{begin of a collective in ns since 1970: its process group's name}: only the exported trace says it."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(path)
        with open(path) as file:
            trace = json.load(file)
    finally:
        os.unlink(path)
    base = trace.get("baseTimeNanoseconds", 0)
    return {base + round(e["ts"] * 1000): str(e["args"]["Process Group Name"]) for e in trace["traceEvents"]
            if e.get("name") == "record_param_comms" and "Process Group Name" in e.get("args", {})}


class _Context(NamedTuple):
    phase: str
    module: Optional[str]
    depth: int
    in_backward: bool


def _walk(event, concrete, context, out):
    name = event.name
    if name.startswith(PREFIX):
        inner = context._replace(module=name[len(PREFIX):], phase="recompute" if context.in_backward else "forward")
    else:
        if name.startswith(ENGINE):
            context = context._replace(phase="backward", in_backward=True, module=None)
        elif name.startswith("Optimizer."):
            context = context._replace(phase="optimizer")
        fields = event.extra_fields if event.tag.name == "TorchOp" else None
        if context.phase == "other" and fields is not None and fields.sequence_number >= 0:
            context = context._replace(phase="forward")  # a loss, say: autograd remembers it
        inputs = arguments(fields.inputs, concrete.get((name, event.start_time_ns), [])) if fields is not None else []
        out.append(Operation(event.start_time_ns, event.end_time_ns, event.start_tid, name, inputs, context.phase, context.module, context.depth))
        inner = context._replace(depth=context.depth + 1)
    for child in event.children:
        _walk(child, concrete, inner, out)


def arguments(inputs, concrete):
    """An operation's arguments for the record; `concrete` has what the typed ones lack: lists of integers."""
    return [_argument(value, concrete[i] if i < len(concrete) else None) for i, value in enumerate(inputs)]


def _argument(value, concrete):
    if value is None:
        return _plain(concrete)
    if isinstance(value, list):
        return [_argument(v, None) for v in value]
    if hasattr(value, "sizes"):
        return tensor(value)
    return _plain(value)


def _plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value)


def contiguous(sizes):
    strides, step = [], 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


def tensor(meta):
    sizes, strides = list(meta.sizes), list(meta.strides)
    name = str(meta.dtype).replace("torch.", "")
    described = {"d": TYPES.get(name, name), "s": sizes}
    if strides != contiguous(sizes):
        described["st"] = strides
    if meta.device.type != "cuda":
        described["dev"] = meta.device.type
    return described
