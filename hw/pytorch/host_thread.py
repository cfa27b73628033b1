"""One host thread of a program: its calls of a pass, in order, and the times of its regions."""

import time

import torch

from program import ProgramError


class Trace:
    """Names a call in PyTorch's profiler: spans.py reads them."""

    def __init__(self, function, call):
        self.function, self.name = function, f"foretrace {call.id} {call.instance}"

    def __call__(self):
        with torch.profiler.record_function(self.name):
            self.function()


class HostThread:
    def __init__(self, program, calls, thread, process):
        self.program, self.calls, self.thread = program, calls, thread
        self.name = program.threads[thread]["name"]
        self.at = 0  # position in `plain`, for the watchdog
        self.samples = {}  # (op, instance): nanoseconds, of the last pass
        self.begun = []
        self.kinds = []
        self.streams = {}  # (op, instance): the stream that it puts work on
        self.grouped = {}  # (op, instance) of a group: that of its first operation, whose its kernel is
        self.plain, self.traced = [], []
        self.listed = program.calls(thread, process)
        self._add_all(self.listed)

    def _add(self, function, call, traced=True):
        self.plain.append(function)
        self.traced.append(Trace(function, call) if traced else function)
        self.kinds.append(call.id)

    def _add_all(self, calls):
        for call in calls:
            try:
                self._add_one(call)
            except ProgramError as error:
                if error.placed:
                    raise
                placed = ProgramError(f"{self.program.place(call.id)}: {error}")
                placed.placed = True
                raise placed from error

    def _add_one(self, call):
        if "stream" in call.values:
            self.streams[call.id, call.instance] = call.stream
        if call.kind == "region":
            self._add(lambda: self.begun.append(time.perf_counter_ns()), call, traced=False)
            self._add_all(call.inside)
            key = (call.id, call.instance)
            self._add(lambda: self.samples.__setitem__(key, time.perf_counter_ns() - self.begun.pop()), call, traced=False)
        elif call.kind == "graph_capture":
            graphs, use = self.calls.objects.graphs, self.calls.use

            def begin():
                use(call.stream)
                graphs[call.graph] = torch.cuda.CUDAGraph()
                graphs[call.graph].capture_begin(capture_error_mode="relaxed")

            def end():
                use(call.stream)
                graphs[call.graph].capture_end()
            self._add(begin, call)
            self._add_all(call.inside)
            self._add(end, call)
        elif call.kind == "nccl_group":
            function = self.calls.communication.group_of(call)
            if function is not None:
                first = call.inside[0]
                self.streams[first.id, first.instance] = first.stream
                self.grouped[call.id, call.instance] = (first.id, first.instance)
                self._add(function, call)
        else:
            if call.kind in ("memcpy", "memset"):
                touched = [call.dst] if call.kind == "memset" else [call.src, call.dst]
                self.streams[call.id, call.instance] = self.calls._default_of(*touched)
            function = self.calls.function(call)
            if function is not None:
                self._add(function, call)

    def run(self, traced=False):
        self.calls.begin()
        self.begun.clear()
        for at, function in enumerate(self.traced if traced else self.plain):
            self.at = at
            function()
        self.at = len(self.plain)

    def place(self):
        """Where it is, or was last."""
        id = self.kinds[min(self.at, len(self.kinds) - 1)] if self.kinds else None
        return "has nothing to do" if id is None else self.program.place(id)

    def times(self):
        """(op, instance): nanoseconds of the last pass, of regions and of event_elapsed_time with an id."""
        named = {op["id"] for op in self.program.walk() if "label" in op}
        return self.samples | {key: value for key, value in self.calls.elapsed.items() if key[0] in named}
