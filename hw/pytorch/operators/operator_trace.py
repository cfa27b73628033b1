"""Launches of a Kineto trace (JSON), each with the operator that made it. Needs no PyTorch. Times in microseconds."""

import bisect
import json


def signature(arguments, name):
    """[name, shapes, types, strides where any is not packed, scalars that matter]: JSON-ready."""
    dims = arguments.get("Input Dims", [])
    types = arguments.get("Input type", [])
    strides = arguments.get("Input Strides", [])
    packed = all(_packed(d, s) for d, s in zip(dims, strides))
    concrete = [c for c in arguments.get("Concrete Inputs", [])]
    return [name, dims, types, None if packed else strides, concrete if any(concrete) else None]


def _packed(dims, strides):
    if dims and isinstance(dims[0], list):
        return all(_packed(d, s) for d, s in zip(dims, strides or [[]] * len(dims)))
    expected = 1
    for size, stride in zip(reversed(dims), reversed(strides or [])):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


class Trace:
    def __init__(self, path):
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        self.windows, self.device, called, operators = [], [], {}, {}
        for event in events:
            category, arguments = event.get("cat"), event.get("args", {})
            if event.get("ph") != "X":
                continue
            if category == "cpu_op":
                operators[arguments.get("External id")] = event
            elif category == "user_annotation" and event["name"].startswith("case:"):
                self.windows.append((event["ts"], event["ts"] + event["dur"], event["name"][5:]))
            elif category in ("cuda_runtime", "cuda_driver"):
                called[arguments.get("correlation")] = event
            elif category in ("kernel", "gpu_memcpy", "gpu_memset"):
                self.device.append(event)
        self.called = called
        self.operators = operators
        self.windows.sort()
        self.device.sort(key=lambda e: called.get(e["args"].get("correlation"), e)["ts"])

    def window_of(self, at):
        here = bisect.bisect_right(self.windows, (at, float("inf"), "")) - 1
        if here < 0 or at > self.windows[here][1]:
            return None
        return here

    def launches(self):
        """By window: [(signature, name, grid, block, category, bytes, begin, duration, called at)], in order of the calls."""
        found = {}
        for event in self.device:
            arguments = event["args"]
            call = self.called.get(arguments.get("correlation"))
            window = self.window_of(call["ts"] if call else event["ts"])
            if window is None:
                continue
            operator = self.operators.get(arguments.get("External id"))
            made_by = signature(operator["args"], operator["name"]) if operator else None
            found.setdefault(window, []).append(
                (made_by, event["name"], arguments.get("grid"), arguments.get("block"), event["cat"], arguments.get("bytes"),
                 event["ts"], event["dur"], call["ts"] if call else None, arguments.get("stream")))
        return found
