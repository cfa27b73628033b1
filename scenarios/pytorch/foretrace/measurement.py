"""Measures steps of a program on a real GPU: first without a profiler, then one with it."""

import time

from . import call_timer
from .recorder import CaptureDone
from .reference_loop import LOOPS, host_speed, one_round

WARM = 3  # steps before: first calls, the optimizer's state, DDP's buckets


class Measurement:
    """Listens to Steps. `synchronised` steps end with a wait for the GPU; `turns` times `free` ones follow each other, with one wait behind them; then one to
    warm the profiler up and one that is profiled, which ends the program."""

    def __init__(self, warm=WARM, synchronised=4, free=4, trace=True, turns=1):
        self.warm, self.synchronised, self.free, self.trace = warm, synchronised, free, trace
        self.followed = free * turns  # steps without a wait of ours in between, but between turns
        self.turns_ms = []
        self.index = 0
        self.step_ms, self.host_ms, self.free_ms, self.first_ms = [], [], None, []
        self.loops = []  # the reference loops behind each synchronised step and each turn
        self.memory, self.profile_ms = {}, None
        self.profiler = None
        self.trace_file = None
        self.inside = False
        self.done = False
        self.timer, self.calls = call_timer.present(), None

    def _phase(self):
        i = self.index - self.warm
        if i < 0:
            return "warm"
        if i < self.synchronised:
            return "synchronised"
        if i < self.synchronised + self.followed:
            return "free"
        return "profiled" if i == self.synchronised + self.followed + 1 else "before profile"

    def _place_in_turn(self):
        """0 .. free - 1; other phases have none."""
        return (self.index - self.warm - self.synchronised) % self.free if self._phase() == "free" else None

    def begin(self, _name):
        import torch
        if self.done:
            return
        phase, self.inside = self._phase(), True
        first_free = self._place_in_turn() == 0
        if phase == "synchronised" and self.index == self.warm:
            torch.cuda.synchronize()
            self._memory_begins()
        if phase in ("synchronised", "warm") or first_free or phase == "profiled":
            torch.cuda.synchronize()
        if first_free:
            self.free_begin = time.perf_counter_ns()
        if phase == "before profile" and self.trace:
            self.memory_ends()
            self._start_profiler()
        if phase == "profiled" and self.trace:
            self.annotation = torch.profiler.record_function("foretrace.step")
            self.annotation.__enter__()
        if phase == "synchronised" and self.timer:
            self.timer.start()
        self.t = time.perf_counter_ns()

    def end(self, _name):
        import torch
        issued = time.perf_counter_ns()
        if self.done or not self.inside:
            return
        phase, self.inside = self._phase(), False
        if phase == "synchronised" and self.timer:
            self.timer.stop()
            if self.index == self.warm + self.synchronised - 1:
                self.calls = self.timer.calls()
        last_free = self._place_in_turn() == self.free - 1
        if phase in ("synchronised", "warm", "profiled") or last_free:
            torch.cuda.synchronize()
        now = time.perf_counter_ns()
        if phase == "synchronised":
            self.host_ms.append((issued - self.t) / 1e6)
            self.step_ms.append((now - self.t) / 1e6)
            self.loops.append(one_round())
        elif phase == "warm":
            self.first_ms.append((now - self.t) / 1e6)
        elif last_free:
            self.turns_ms.append((now - self.free_begin) / 1e6)
            self.free_ms = sum(self.turns_ms) / len(self.turns_ms) / self.free
            self.loops.append(one_round())
            if not self.trace and len(self.turns_ms) * self.free == self.followed:
                self.memory_ends()
                self._finish()
        elif phase == "profiled":
            self.profile_ms = (now - self.t) / 1e6
            self.annotation.__exit__(None, None, None)
            self.profiler.__exit__(None, None, None)
            self._finish()
        self.index += 1

    def _finish(self):
        self.done = True
        raise CaptureDone

    def mark(self, name, begins):
        pass

    def abandon(self):
        self.inside = False

    def _start_profiler(self):
        from torch.profiler import ProfilerActivity, profile
        self.profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True)
        self.profiler.__enter__()

    def _memory_begins(self):
        import torch
        s = torch.cuda.memory_stats()
        self.memory = {"peak_before": [s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"]], "allocated": [s["allocated_bytes.all.current"]],
                       "reserved": [s["reserved_bytes.all.current"]]}
        torch.cuda.reset_peak_memory_stats()

    def memory_ends(self):
        import torch
        if len(self.memory.get("allocated", [])) != 1:
            return
        s = torch.cuda.memory_stats()
        self.memory["allocated"] += [s["allocated_bytes.all.peak"], s["allocated_bytes.all.current"]]
        self.memory["reserved"] += [s["reserved_bytes.all.peak"], s["reserved_bytes.all.current"]]
        self.memory["retries"] = s["num_alloc_retries"]

    def result(self):
        """Main numbers; times in ms, the reference loops in ns."""
        return {"step_ms": _rounded(self.step_ms), "host_ms": _rounded(self.host_ms), "free_running_ms": self.free_ms and round(self.free_ms, 4),
                "turns_ms": _rounded(self.turns_ms), "steps_of_turn": self.free,
                "first_ms": _rounded(self.first_ms), "profiled_ms": self.profile_ms and round(self.profile_ms, 4), "memory": self.memory,
                "host": host_speed(self.loops) if self.loops else None,
                "loops_ms": [[round(one[name] / 1e6, 3) for name in LOOPS] for one in self.loops]}


def _rounded(values):
    return [round(v, 4) for v in values]
