"""How one step is timed: untraced, warm, by the rules of the C++ harness.

Order: warm-up; a burst step after 0.5 s of idling; steps with a synchronisation each; steps back to back;
steps again with the GPU warm from at least a second of load.
"""

import math
import statistics
import time

WARMUP = 3
IDLE_S = 0.5
LEAST_STEPS, LEAST_S, MOST_S = 8, 0.8, 2.0
SUSTAINED_STEPS = 5


def percentile(values, share):
    """Of the sorted values, linearly between neighbours; `share` from 0 to 1."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def step_count(step_s):
    """At least 8 steps and 0.8 s, but not above 2 s, and never fewer than 3 steps."""
    wanted = max(LEAST_STEPS, math.ceil(LEAST_S / step_s))
    return max(3, min(wanted, math.floor(MOST_S / step_s)))


class Notes:
    """Host time until the calls of each phase have returned, in seconds, summed over a step."""

    def __init__(self, memory=None):
        self.phases, self.allocated, self.memory = {}, {}, memory
        self.last = time.perf_counter()

    def __call__(self, name):
        now = time.perf_counter()
        self.phases[name] = self.phases.get(name, 0.0) + now - self.last
        if self.memory and name not in self.allocated:
            self.allocated[name] = self.memory.allocated()
        self.last = time.perf_counter()


def pass_times(step, synchronize, together, repetitions, steps, note=lambda number: None):
    """As measure.py has it: passes that begin in all processes at once, of `steps` steps with a synchronisation each.
    Nanoseconds of each step, by pass; `note` comes between them."""
    passes = []
    for number in range(repetitions):
        note(number)
        together()
        times = []
        for _ in range(steps):
            begin = time.perf_counter_ns()
            step.run()
            synchronize()
            times.append(time.perf_counter_ns() - begin)
        passes.append(times)
    return passes


class Timer:
    """`synchronize` waits for the device, `meet` for the other ranks, `sample` reads clocks."""

    def __init__(self, step, synchronize, meet, sample, memory):
        self.step, self.synchronize, self.meet, self.sample, self.memory = step, synchronize, meet, sample, memory

    def one(self, notes=None):
        begin = time.perf_counter()
        self.step.run(notes or Notes())
        self.synchronize()
        return time.perf_counter() - begin

    def warm_up(self):
        """Seconds of the last warm-up step; and what was allocated at the points of the first and the last."""
        first, last = Notes(self.memory), Notes(self.memory)
        self.one(first)
        after_first = self.memory.allocated()
        for _ in range(WARMUP - 2):
            self.one()
        seconds = self.one(last)
        return seconds, {"after_first_step": after_first,
                         **{f"first_step_after_{name}": value for name, value in first.allocated.items()},
                         **{f"after_{name}": value for name, value in last.allocated.items()},
                         "between_steps": self.memory.allocated()}

    def synchronised(self, count):
        times, phases = [], []
        for _ in range(count):
            notes = Notes()
            times.append(self.one(notes))
            phases.append(notes.phases)
        return times, {name: statistics.median(one[name] for one in phases) for name in phases[0]}

    def back_to_back(self, count):
        begin = time.perf_counter()
        for _ in range(count):
            self.step.run()
        issued = time.perf_counter() - begin
        self.synchronize()
        return (time.perf_counter() - begin) / count, issued / count

    def under_load(self):
        """Clock and power while steps run."""
        for _ in range(2):
            self.step.run()
        sample = self.sample()
        self.synchronize()
        return sample

    def measure(self, agree):
        """`agree(seconds)`: the longest of all ranks, so that all run the same number of steps."""
        step_s, allocated = self.warm_up()
        count = step_count(agree(step_s))
        time.sleep(IDLE_S)
        self.meet()
        idle = self.sample()
        burst = self.one()
        self.meet()
        times, phases = self.synchronised(count)
        self.meet()
        free, issued = self.back_to_back(max(3, count // 2))
        load = self.under_load()
        self.meet()
        sustained, _ = self.synchronised(min(SUSTAINED_STEPS, count))
        in_ms = lambda seconds: round(seconds * 1e3, 4)
        return {"steps": count, "step_time_ms_median": in_ms(statistics.median(times)),
                "step_time_ms_p10": in_ms(percentile(times, 0.1)), "step_time_ms_p90": in_ms(percentile(times, 0.9)),
                "step_times_ms": [in_ms(one) for one in times[:40]],
                "free_running_ms": in_ms(free), "free_running_issue_ms": in_ms(issued),
                "host_issue_ms": {name: in_ms(value) for name, value in phases.items()},
                "burst_ms": in_ms(burst), "sustained_ms": in_ms(statistics.median(sustained)),
                "clock_idle": idle, "clock_load": load, "allocated_bytes": allocated}
