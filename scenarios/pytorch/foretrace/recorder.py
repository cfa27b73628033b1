"""Records a few steps of a program on the emulated GPU: some without a profiler, for the host's time, and one with it, for the operations."""

from dataclasses import dataclass, field
from typing import Optional

from . import operations
from .emulation import Emulation
from .modules import ModulePaths
from .reference_loop import one_round


class CaptureDone(BaseException):
    """Ends the user's program when all is recorded. Not an Exception, so that the program does not catch it."""


@dataclass
class Instance:
    """One step."""
    index: int
    first: int = 0  # of the library's calls
    last: int = 0
    ns: int = 0  # the host's time
    cpu_ns: int = 0  # of it on a processor
    loops: Optional[dict] = None  # the reference loops behind it
    counts: dict = field(default_factory=dict)
    marks: list = field(default_factory=list)  # (number of calls, t, name, begins) of regions within
    operations: Optional[list] = None
    groups: Optional[dict] = None
    memory: Optional[dict] = None


class Recorder:
    """Listens to Steps. Step `profiled` (from 0) gives calls and operations; a program that goes on gives them again `again` steps later, when its allocator
    and its events have settled. All other steps but the first, and `more` behind the last, give times."""

    def __init__(self, profiled=2, more=2, stop=False, again=0):
        self.emulation = Emulation()
        self.profiled, self.last, self.stop = {profiled, profiled + again}, profiled + again + more, stop
        self.profiles = True
        self.instances = []
        self.current = None
        self.done = False
        self._profiler = self._modules = None

    def begin(self, _name):
        with self.emulation.recorder_time():
            if self.done:
                return
            instance = self.current = Instance(len(self.instances))
            if self.profiles and instance.index in self.profiled:
                instance.memory = _memory_before([i.memory for i in self.instances if i.memory])
                self._modules = ModulePaths()
                self._modules.__enter__()
                self._profiler = operations.start()
            self.emulation.counts()
            instance.first = self.emulation.count()
        self.emulation.set_origin()

    def end(self, _name):
        now, cpu = self.emulation.now(), self.emulation.cpu_now()
        with self.emulation.recorder_time():
            instance, self.current = self.current, None
            if self.done or instance is None:
                return
            instance.ns, instance.cpu_ns = now, cpu
            instance.last, instance.counts = self.emulation.count(), self.emulation.counts()
            if self._profiler:
                instance.operations, instance.groups = operations.stop(self._profiler)
                self._modules.__exit__()
                self._profiler = self._modules = None
                _memory_after(instance.memory)
            elif instance.index > 0:
                instance.loops = one_round()
            self.instances.append(instance)
            if instance.index >= self.last:
                self.done = True
        if self.done and self.stop:
            raise CaptureDone

    def mark(self, name, begins):
        if self.current is not None and not self.done:
            self.current.marks.append((self.emulation.count(), self.emulation.now(), name, begins))

    def abandon(self):
        """The program has regions: what was begun for its first optimizer step is none."""
        self.current = None

    def profile(self):
        """The last profiled step; None if the program did not come so far."""
        return next((i for i in reversed(self.instances) if i.operations is not None), None)

    def plain(self):
        """Steps without a profiler, without the first one, which is not like the others."""
        return [i for i in self.instances if i.operations is None and i.index > 0]


def _statistics():
    import torch
    if not torch.cuda.is_initialized():
        return {}
    return torch.cuda.memory_stats()


KINDS = {"allocated": "allocated_bytes.all", "reserved": "reserved_bytes.all", "active": "active_bytes.all"}


def peaks_before(statistics, earlier):
    """[allocated, reserved] at the peak of all steps so far. `earlier`: memory of the steps profiled before, each of which began with a reset of the peaks."""
    return [max([statistics[KINDS[kind] + ".peak"], *(m["peak_before"][i] for m in earlier), *(m[kind][1] for m in earlier if len(m[kind]) > 1)])
            for i, kind in enumerate(("allocated", "reserved"))]


def _memory_before(earlier):
    import torch
    s = _statistics()
    if not s:
        return {}
    memory = {kind: [s[name + ".current"]] for kind, name in KINDS.items()}
    memory["peak_before"] = peaks_before(s, earlier)
    torch.cuda.reset_peak_memory_stats()
    return memory


def _memory_after(memory):
    s = _statistics()
    for key, name in KINDS.items():
        if s and key in memory:
            memory[key] += [s[name + ".peak"], s[name + ".current"]]
    if s:
        memory["segments"] = s["segment.all.current"]
        memory["retries"] = s["num_alloc_retries"]

