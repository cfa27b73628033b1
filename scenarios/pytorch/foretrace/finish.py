"""Puts a recorded step into its file."""

import bisect
import collections
import json
import os
import sys

from . import record
from .emulation import NONE
from .environment import CaptureError, read_device, torch_versions
from .reference_loop import host_speed

PACKAGES = ("transformers", "torchvision", "timm", "peft", "accelerate", "lightning", "torch_geometric", "diffusers", "triton")

UNSTEADY = 1.5  # on a quiet machine steps differ by a third


def _packages():
    from importlib import metadata
    found = {}
    for name in PACKAGES:
        if name in sys.modules:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                pass
    return found


def header(assumptions, command, digest, loops):
    device_file = os.environ["FORETRACE_DEVICE"]
    device = read_device(device_file)
    torch, cuda = torch_versions()
    number = {name: int(os.environ.get(name.upper(), otherwise)) for name, otherwise in
              (("rank", "0"), ("world_size", "1"), ("local_rank", "0"), ("local_world_size", "1"))}
    return {"foretrace_calls": 1, "torch": torch, "cuda": cuda, "depth": "emulated", **number,
            "device": {"name": device["name"], "key": os.path.basename(device_file).removesuffix(".yaml"), "sms": device["sms"],
                       "capability": [device["major"], device["minor"]], "memory": int(os.environ.get("FORETRACE_MEMORY", device["memory"]))},
            "command": command, "script_digest": digest, "host": host_speed(loops), "packages": _packages(), "assumptions": assumptions}


def unsteady(lengths):
    """What is to be said of steps of such lengths in ns, where they differ more than a program's own do: "" else. One of them may be odd."""
    ordered = sorted(lengths)[:-1]
    if len(ordered) < 2 or ordered[-1] < UNSTEADY * ordered[0]:
        return ""
    return (f"the host's work is not sure: steps took {ordered[0] / 1e6:.1f} to {ordered[-1] / 1e6:.1f} ms here, so something else kept this machine busy; "
            "capture again on a quiet one")


def write_record(path, recorder, world, command, digest, region, guessed=None, not_drawn=0):
    """The file of the profiled step. Returns a dictionary of its main numbers."""
    emulation = recorder.emulation
    step = recorder.profile()
    if step is None:
        raise CaptureError(_too_short(recorder))
    everything = emulation.calls(step.first, step.last)
    threads = record.Threads(emulation, everything)
    calls = threads.keep(everything)
    plain = [(threads.keep(emulation.calls(p.first, p.last)), p.ns, p.cpu_ns) for p in recorder.plain()]
    times, end, alike = record.host_times(emulation, (calls, step.ns, step.cpu_ns), plain)
    assumptions = _assumptions(emulation, calls, threads, plain, alike)
    assumptions += _computed(emulation, guessed)
    if noise := unsteady([p.ns for p in recorder.plain()]):
        assumptions.append(noise)
        print(f"foretrace: {noise}", file=sys.stderr, flush=True)
    if not_drawn:
        assumptions.append(f"initial values of {not_drawn} large tensors on the CPU were not drawn")
    before = emulation.calls(0, step.first)
    declared = record.declarations(emulation, before + everything)
    _name_communicators(declared, calls, emulation, step, world)
    writer = record.Writer(emulation, declared)
    writer.add(**header(assumptions, command, digest, [p.loops for p in recorder.plain() if p.loops]))
    for i, name in enumerate(threads.names):
        writer.add(k="thread", i=i, n=name, role="main" if name == "main" else "autograd" if "autograd" in name else "other")
    for c in record.graph_bodies(emulation, before, calls):
        writer.call(c, None)
    writer.add(k="begin", region=region, instance=step.index, t=0)
    marks = _marks(step, everything, threads)
    reads = record.join(writer, calls, times, step.operations, threads, marks)
    writer.add(k="end", region=region, instance=step.index, t=end, memory=step.memory, counts=step.counts,
               steps_ns=[p.ns for p in recorder.plain()],
               steps_cpu_ns=[p.cpu_ns for p in recorder.plain()], profiled_ns=step.ns)
    record.write(path, writer.lines)
    kinds = collections.Counter(record.kind(emulation.text(c.text)) for c in calls)
    return {"calls": len(calls), "operations": len(step.operations), "kinds": dict(kinds), "host_ms": end / 1e6,
            "unsure": len(record.unsure(reads)), "peak_bytes": step.memory.get("allocated", [0, 0])[1], "steps_alike": alike, "assumptions": assumptions}


def _too_short(recorder):
    seen = len(recorder.instances)
    if seen == 0:
        return ("the program ended without a step: mark it with `with foretrace.region(\"step\"):`, which a loop without an optimizer needs; a "
                "training loop's steps are seen by themselves")
    return f"the program ended after {seen} step{'s' if seen > 1 else ''}, and step {min(recorder.profiled) + 1} was to be recorded: --step {seen} records the last"


def _marks(step, everything, threads):
    """Positions of regions among the calls that are kept."""
    kept = [i for i, c in enumerate(everything) if c.thread in threads.numbers]
    return [(bisect.bisect_left(kept, at - step.first), t, name, begins) for at, t, name, begins in step.marks]


def _assumptions(emulation, calls, threads, plain, alike):
    said = []
    reads = collections.Counter()
    for c in calls:
        text = emulation.text(c.text)
        if '"from":"rule"' in text:
            r = json.loads("{" + text + "}")
            reads[(r["n"], r["v"], r.get("after", ""))] += 1
    for (n, v, after), times in reads.items():
        what = {1: "a truth value", 4: "4 bytes", 8: "8 bytes"}.get(n, f"{n} bytes")
        said.append(f"the host read {what} that a kernel would have computed, {times} times: taken to be {v} (after {_short(emulation, after)})")
    if plain and not alike:
        said.append("no step without the profiler did the same work: the host's times are the profiled step's, scaled to the shortest of the others")
    if not plain:
        said.append("the program had no second step without the profiler: the host's times are those of the profiled step, which are too long")
    for name in sorted(set(threads.left_out.values())):
        said.append(f"calls of thread {name!r} are left out")
    if any('"op":"conv_' in emulation.text(c.text) for c in calls):
        said.append("workspaces of cuDNN's convolutions are those that were measured on an H100 (float32 as TF32), none of layers that were not: memory may be more")
    for c in calls:
        if record.kind(emulation.text(c.text)) == "unsupported":
            said.append("a call was refused: " + emulation.text(c.text))
    return said


def _computed(emulation, guessed):
    """What is said of values that a run before computed; `guessed` is None where there was none."""
    if guessed is None:
        return []
    said = ["what the host read of integers and truth values was computed on the CPU in a run before"]
    said += [f"{what} ({times} times)" for what, times in sorted(guessed.items())]
    if emulation.misfits():
        said.append(f"{emulation.misfits()} reads were not those of the run before: the rules decided them")
    return said


def _short(emulation, mangled):
    name = emulation.demangled(mangled)
    return name if len(name) < 100 else name[:97] + "..."


def _name_communicators(declared, calls, emulation, step, world):
    """Global ranks of each communicator."""
    names = {}
    begins = sorted(step.groups or {})
    for c in calls:
        if c.comm == NONE or c.comm in names:
            continue
        at = bisect.bisect_right(begins, c.clock)
        if at:
            names[c.comm] = step.groups[begins[at - 1]]
    for (what, i), comm in declared.items():
        if what != "comm":
            continue
        name = names.get(i)
        comm["ranks"] = world.ranks_of(comm["size"], name) if world else None
        if name:
            comm["n"] = name

