"""The second depth: a step written down with fake tensors, where the emulated GPU cannot run. One rank, no CUDA in PyTorch; operations and memory from PyTorch itself,
launches from a table (fake_launches), the host's time by their number."""

import contextlib
import json
import os
import sys
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import record
from .environment import CaptureError, read_device, script_digest, torch_versions
from .fake_device import FakeGpu, is_gpu, patched
from .fake_launches import PRODUCTS, Launches
from .operations import TYPES, contiguous
from .child import end_with
from .recorder import CaptureDone
from .reference_loop import host_speed, one_round

ROUND, SEGMENT, WORKSPACE = 512, 2 << 20, 32 << 20  # the caching allocator's
FREE = ("aten::detach", "aten::alias", "aten::lift_fresh", "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
        "aten::_unsafe_view", "aten::is_same_size", "aten::set_", "aten::resize_")


def described(t):
    d = {"d": TYPES.get(str(t.dtype)[6:], str(t.dtype)[6:]), "s": list(t.shape)}
    if not isinstance(t, FakeTensor):
        d["dev"] = "cpu"
    if t.layout == torch.strided and list(t.stride()) != contiguous(d["s"]):
        d["st"] = list(t.stride())
    return d


def argument(value):
    if isinstance(value, torch.Tensor):
        return described(value)
    if isinstance(value, (list, tuple)):
        return [argument(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, str)) else value if isinstance(value, float) and abs(value) < float("inf") else str(value)


class Memory:
    """Bytes of the fake GPU's storages, as the caching allocator rounds them."""

    def __init__(self):
        self.held, self.now, self.peak, self.begin, self.has_workspace = {}, 0, 0, 0, False

    def born(self, tensor):
        key = tensor.untyped_storage()._cdata
        if key not in self.held:
            size = -(-max(tensor.untyped_storage().nbytes(), 1) // ROUND) * ROUND
            self.held[key] = [0, size]
            self.now += size
            self.peak = max(self.peak, self.now)
        self.held[key][0] += 1
        weakref.finalize(tensor, self._gone, key)

    def workspace(self):
        """cuBLAS' and cuBLASLt's, which the first product of a program allocates: 32 MiB each on Hopper."""
        self.has_workspace = True
        self.now += 2 * WORKSPACE
        self.peak = max(self.peak, self.now)

    def _gone(self, key):
        one = self.held.get(key)
        if one is None:
            return
        one[0] -= 1
        if one[0] == 0:
            self.now -= one[1]
            del self.held[key]


class FakeRecorder(TorchDispatchMode):
    """Listens to Steps, and to each operation."""

    def __init__(self, profiled=2, stop=True):
        super().__init__()
        self.profiled, self.stop, self.index, self.done = profiled, stop, 0, False
        self.gpu, self.memory, self.launches = FakeGpu(self._copied), Memory(), Launches()
        self.lines, self.tables, self.recording, self.operation = [], {}, False, None
        self.operations = self.calls = 0
        self.phase, self.modules, self.rules, self.loops = None, [], {}, []
        self.unit = 0.0

    # Steps
    def begin(self, _name):
        self.gpu.casts.clear()
        self.recording = self.index == self.profiled and not self.done
        if self.recording:
            self.memory.peak = self.memory.begin = self.memory.now
            self.loops = [one_round() for _ in range(3)]
            self.unit = self.launches.host_loops * host_speed(self.loops)["torch_loop_ns"]
            self.line(k="thread", i=0, n="main", role="main")
            self.line(k="begin", region="step", instance=self.index, t=0)
            self.line(k="stream", i=0)

    def end(self, name):
        if self.recording:
            m = self.memory
            reserved = -(-m.peak // SEGMENT) * SEGMENT
            self.line(k="end", region="step", instance=self.index, t=self.time(), memory={"allocated": [m.begin, m.peak, m.now], "reserved": [reserved] * 3, "active": [m.begin, m.peak, m.now]},
                      steps_ns=[self.time()], steps_cpu_ns=[self.time()], profiled_ns=self.time())
            self.recording, self.done = False, True
        self.index += 1
        if self.done and self.stop:
            raise CaptureDone

    def mark(self, name, begins):
        pass

    def abandon(self):
        self.index = 0
        self.lines.clear()
        self.tables.clear()

    # Lines
    def time(self):
        return round(self.calls * self.unit)

    def line(self, **values):
        self.lines.append(json.dumps(values, separators=(",", ":")))

    def number(self, kind, text, **values):
        table = self.tables.setdefault(kind, {})
        if text not in table:
            table[text] = len(table)
            self.line(k=kind, i=table[text], **values)
        return table[text]

    def call(self, kind, **values):
        self.calls += 1
        if self.recording:
            self.line(k=kind, **values, t=self.time(), s=0, **({} if self.operation is None else {"op": self.operation}))

    def _copied(self, size, way, pinned):
        self.call("copy", dir=way, n=size, **{"async": False, "pin": pinned})

    def synchronised(self, what):
        self.call("sync", w=what)

    # Operations
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        leaves = tree_leaves((args, kwargs))
        on_gpu = any(isinstance(a, FakeTensor) for a in leaves) or is_gpu(kwargs.get("device"))
        name = func._schema.name
        if not on_gpu and not self._in_fake():
            return func(*args, **kwargs)
        if name.startswith("prim::"):
            return func(*args, **kwargs)
        if name == "aten::_local_scalar_dense":
            return self._read(args[0])
        if name in ("aten::nonzero", "aten::masked_select", "aten::_unique2"):
            raise CaptureError(f"{name} has a size that data decide, which fake tensors do not have: PyTorch's CUDA build on Linux has the emulated GPU, which computes it")
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        if name == "aten::copy_" and not isinstance(args[0], FakeTensor):
            self._copied(args[0].numel() * args[0].element_size(), "d2h", False)
            return args[0]
        inputs = [argument(a) for a in args]
        self.gpu.inside += 1
        try:
            with self.gpu.mode:
                out = func(*args, **kwargs)
        finally:
            self.gpu.inside -= 1
        for t in tree_leaves(out):
            if isinstance(t, FakeTensor):
                self.memory.born(t)
        is_view = name in FREE or any(a.alias_info is not None and not a.alias_info.is_write for a in func._schema.arguments)
        self._operation(name, inputs, is_view)
        return out

    def _in_fake(self):
        return any(m is self.gpu.mode for m in torch.utils._python_dispatch._get_current_dispatch_mode_stack())

    def _operation(self, name, inputs, is_view):
        if not self.recording:
            if name in PRODUCTS and not self.memory.has_workspace:
                self.memory.workspace()
            return
        text = json.dumps([name, inputs])
        q = self.number("sig", text, n=name, **{"in": inputs})
        backward = torch._C._current_graph_task_id() != -1
        phase = self.phase or ("backward" if backward and not self.modules else "recompute" if backward else "forward")
        m = {"m": self.number("mod", self.modules[-1], n=self.modules[-1])} if self.modules else {}
        self.operation, self.operations = self.operations, self.operations + 1
        self.line(k="op", i=self.operation, q=q, ph=phase, **m)
        if name == "aten::copy_" and len(inputs) > 1 and isinstance(inputs[1], dict) and "dev" in inputs[1]:
            calls = [("copy", {"dir": "h2d", "n": 1})]
        else:
            calls = self.launches.of(name, inputs, is_view)
        for kind, keys in calls:
            if kind == "gemm" and not self.memory.has_workspace:
                self.memory.workspace()
            if kind == "launch":
                keys = dict(keys, n=self.number("name", keys["name"], n=keys["name"]))
                keys.pop("name")
            self.call(kind, **keys)
        self.operation = None

    def _read(self, tensor):
        """The host reads a value: true, or 0."""
        value = True if tensor.dtype == torch.bool else 0.0 if tensor.is_floating_point() else 0
        self.rules[str(value)] = self.rules.get(str(value), 0) + self.recording
        self._copied(tensor.element_size(), "d2h", True)
        self.synchronised("stream")
        return value

    def assumptions(self):
        said = ["fake tensors: operations and memory allocated are PyTorch's own; launches are those of a table of operations (scenarios/pytorch/README.md), streams, "
                "events and what libraries choose are not known, reserved memory is that allocated at the peak, the host's time is by the number of launches"]
        said += [f"the host read values that a kernel would have computed, {n} times: taken to be {v}" for v, n in self.rules.items() if n]
        if self.launches.unknown:
            listed = ", ".join(f"{n} ({t})" for n, t in sorted(self.launches.unknown.items()))
            said.append(f"operations whose launches the table does not know, taken as one kernel each: {listed}")
        return said


@contextlib.contextmanager
def watching(recorder):
    """Phases and modules of what runs."""
    from torch.nn.modules import module
    from torch.optim.optimizer import Optimizer
    paths = {}

    def before(one, _inputs):
        if id(one) not in paths:
            for path, part in one.named_modules():
                paths.setdefault(id(part), path or type(one).__name__)
        recorder.modules.append(paths[id(one)])

    def after(*_):
        if recorder.modules:
            recorder.modules.pop()
    handles = [module.register_module_forward_pre_hook(before), module.register_module_forward_hook(after, always_call=True)]
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    def phase(value):
        def hook(*_):
            recorder.phase = value
        return hook
    handles += [register_optimizer_step_pre_hook(phase("optimizer")), register_optimizer_step_post_hook(phase(None))]
    assert Optimizer
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def capture_fake(options, script, arguments):
    """Runs the script; writes its record; returns what `write_record` of `finish` does."""
    from . import session
    from .child import run_script
    from .steps import Steps
    device_file = os.environ["FORETRACE_DEVICE"]
    device = read_device(device_file)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CaptureError("fake tensors capture one rank of one: several need PyTorch's CUDA build on Linux")
    digest = script_digest([script, *arguments], 1)  # before the program may go elsewhere, or change itself
    recorder = FakeRecorder((options["step"] or session.FIRST) - 1)
    steps = Steps(recorder, options["region"])
    session._active = steps
    try:
        with patched(recorder.gpu, device, recorder.synchronised), watching(recorder):
            steps.watch_optimizers()
            with recorder, recorder.gpu, contextlib.suppress(CaptureDone):
                run_script(script, arguments, options["module"])
    finally:
        session._active = None
        steps.close()
    if not recorder.done:
        raise CaptureError(f"the program ended after {recorder.index} steps, and step {recorder.profiled + 1} was to be recorded")
    torch_version, cuda = torch_versions()
    said = recorder.assumptions()
    head = {"foretrace_calls": 1, "torch": torch_version, "cuda": cuda or "", "depth": "fake", "rank": 0, "world_size": 1, "local_rank": 0, "local_world_size": 1,
            "device": {"name": device["name"], "key": os.path.basename(device_file).removesuffix(".yaml"), "sms": device["sms"],
                       "capability": [device["major"], device["minor"]], "memory": device["memory"]},
            "command": [script, *arguments], "script_digest": digest, "host": host_speed(recorder.loops), "packages": {}, "assumptions": said}
    os.makedirs(options["out"], exist_ok=True)
    record.write(os.path.join(options["out"], "rank0.calls.jsonl.gz"), [json.dumps(head, separators=(",", ":")), *recorder.lines])
    kinds = {}
    for line in recorder.lines:
        kind = line[6:line.index('"', 6)]
        kinds[kind] = kinds.get(kind, 0) + 1
    return {"calls": recorder.calls, "operations": recorder.operations, "kinds": kinds, "host_ms": recorder.time() / 1e6, "unsure": 0, "peak_bytes": recorder.memory.peak,
            "steps_alike": 0, "assumptions": said}


def main():
    from .child import hand_over
    options, script, arguments = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
    end_with(options.get("parent"))
    try:
        numbers = capture_fake(options, script, arguments)
    except CaptureError as error:
        print(f"foretrace: {error}", file=sys.stderr)
        os._exit(2)
    hand_over(options, numbers)


if __name__ == "__main__":
    main()
