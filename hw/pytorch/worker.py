"""One rank that measures a list of configurations, one after the other, in one process.

First all timings, then all traces: CUPTI slows CUDA calls down for the rest of a process once it was on.
Each finished part is a line of OUT/parts.rankR.jsonl. Started by train.py; reads RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT as torchrun sets them. Exit codes: 0 all done or out of time; 17 the ranks lost each other.
"""

import argparse
import gc
import gzip
import json
import os
import pathlib
import shutil
import sys
import time
import traceback
import zlib

import torch
import torch.distributed as dist

import kineto
import shares
import step_trace
from gpu import Memory, Nvml
from layouts import make_step
from meeting import MEETING_S, Barriers, Ranks
from steps.configurations import Configuration, all_configurations, shrunk
from timing import Timer, pass_times

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scenarios" / "pytorch"))
from foretrace.child import end_with  # noqa: E402

LOST = 17
FAILED_TOGETHER_S = 8  # how long a rank that failed waits for the other to fail too
COMPILE_S = 30  # nothing is compiled when less time is left
TRACE_BASE_S = 1.5  # building a model again, profiling it, reading the trace


class Worker:
    def __init__(self, arguments):
        self.ranks, self.deadline, self.out = Ranks(), arguments.deadline, pathlib.Path(arguments.out)
        self.attempt = arguments.attempt
        index = self.ranks.rank
        self.device = torch.device("cpu") if arguments.device == "cpu" else torch.device("cuda", index)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if self.ranks.size > 1:
            device_id = {"device_id": self.device} if self.device.type == "cuda" else {}
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo", **device_id)
        self.nvml, self.memory = Nvml(), Memory(torch, self.device)
        plans = json.loads(pathlib.Path(arguments.plans).read_text(encoding="utf-8")) if arguments.plans else []
        self.plans = {one["configuration"]["id"]: one for one in plans}
        known = [*all_configurations(), *(Configuration(**one["configuration"]) for one in plans)]
        self.known = {one.id: shrunk(one) if arguments.trial else one for one in known}
        self.traces = not arguments.no_trace
        self.lines = (self.out / f"parts.rank{self.ranks.rank}.jsonl").open("a", encoding="utf-8")
        self.costs = {}

    def write(self, part, id, **values):
        self.lines.write(json.dumps({"part": part, "id": id, "attempt": self.attempt, **values}) + "\n")
        self.lines.flush()

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def sample(self):
        index = self.device.index or 0
        return {"sm_mhz": self.nvml.sm_clock_mhz(index), "power_w": self.nvml.power_w(index)}

    def build(self, c):
        """The step, and what was allocated on the way. float32 products use TF32 where that is asked for."""
        gc.collect()
        self.memory.clear()
        if c.compile != "none":
            torch._dynamo.reset()
        torch.set_float32_matmul_precision("high" if c.precision == "tf32" else "highest")
        torch.manual_seed(1)
        before = self.memory.allocated()
        step = make_step(c, self.device, self.ranks.rank)
        gc.collect()
        self.memory.clear()  # what was left of the step before, and a model that is split once it is built
        return step, {"before": before, "after_model": self.memory.allocated()}

    def time_step(self, c):
        begin = time.perf_counter()
        step, allocated = self.build(c)
        built = time.perf_counter()
        meet = lambda: self.gather(c, "meet")
        agree = lambda seconds: max(float(one) for one in self.gather(c, "agree", seconds))
        timed = Timer(step, self.synchronize, meet, self.sample, self.memory).measure(agree)
        timed["allocated_bytes"] = allocated | timed["allocated_bytes"]
        if c.id in self.plans:
            timed["passes_ns"] = self.passes(c, step)
        timed["loss"] = self.loss_of(step)
        parameters = sum(one.numel() for one in step.model.parameters())
        self.costs[c.id] = TRACE_BASE_S + built - begin + 4 * timed["step_time_ms_median"] / 1e3
        return timed | {"parameters": parameters, "memory": self.memory.peaks(),
                        "built_s": round(built - begin, 3), "whole_s": round(time.perf_counter() - begin, 3)}

    def passes(self, c, step):
        """Untraced passes of a scenario. A line before each tells train.py that this process lives."""
        plan, port = self.plans[c.id], os.environ.get("MASTER_PORT", os.getpid())
        barrier = Barriers(f"{port}-train-{zlib.crc32(c.id.encode())}", [self.ranks.size])
        self.gather(c, "opened")
        barrier.unlink()
        return pass_times(step, self.synchronize, lambda: barrier.arrive_and_wait(0, self.ranks.rank),
                          plan["repetitions"], plan["steps"], lambda number: self.write("pass", c.id, number=number))

    def loss_of(self, step):
        loss = step.run()
        if loss is not None and hasattr(loss, "full_tensor"):
            loss = loss.full_tensor()
        return float(loss) if loss is not None and torch.isfinite(loss) else None

    def trace_step(self, c):
        from torch.profiler import ProfilerActivity, profile, record_function, schedule

        begin = time.perf_counter()
        step, _ = self.build(c)
        for _ in range(3 if c.compile != "none" else 2):
            step.run()
        path = self.out / f".trace.rank{self.ranks.rank}.json"
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self.device.type == "cuda" else [])
        with profile(activities=activities, schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                     on_trace_ready=lambda one: one.export_chrome_trace(str(path)),
                     record_shapes=c.full_trace, profile_memory=c.id in self.plans) as profiler:
            for _ in range(2):
                self.synchronize()
                self.gather(c, "profile")
                started = time.perf_counter()
                with record_function("foretrace 0 0"):  # step_trace.py reads it
                    step.run()
                    self.synchronize()
                wall = time.perf_counter() - started
                self.brackets(c)
                profiler.step()
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"), strict=False)
        of_step = step_trace.without_brackets(trace) if c.id in self.plans else trace
        summary = kineto.summarise(of_step)
        found = step_trace.read_step(trace) | {"work": shares.work_of(of_step, self.ranks.size)}
        (self.out / f".step.{c.id}.rank{self.ranks.rank}.json").write_text(json.dumps(found), encoding="utf-8")
        summary["profiled_step_ms"] = round(wall * 1e3, 4)
        if c.full_trace:
            kept = self.out / ".traces" / f"{c.id}.rank{self.ranks.rank}.json.gz"
            kept.parent.mkdir(exist_ok=True)
            with path.open("rb") as plain, gzip.open(kept, "wb", compresslevel=6) as packed:
                shutil.copyfileobj(plain, packed)
            summary["trace_file"] = {"name": kept.name, "bytes": kept.stat().st_size}
        path.unlink()
        return summary | {"whole_s": round(time.perf_counter() - begin, 3)}

    def brackets(self, c):
        """Launches that are waited for, as in measure.py; of scenarios only: the list's traces stay as they were."""
        for turn in range(step_trace.BRACKETS if c.id in self.plans and self.device.type == "cuda" else 0):
            with torch.profiler.record_function(f"foretrace {step_trace.BRACKET} {turn}"):
                torch.cuda._sleep(1)  # noqa: SLF001
                torch.cuda.synchronize()

    def gather(self, c, what, value=""):
        self.ranks.count += 1
        return self.ranks.gather(f"{c.id}/{self.phase}/{what}{self.ranks.count}", value)

    def one(self, phase, id, work):
        """Runs `work`, records its result or its error, and goes on if the other rank fared likewise."""
        self.phase, self.ranks.count = phase, 0
        self.write("begin", id, phase=phase)
        error = None
        try:
            self.write(phase, id, **{phase: work(self.known[id])})
        except Exception as caught:  # noqa: BLE001: whatever goes wrong is this configuration's result
            error = self.describe(caught)
            self.write("error", id, phase=phase, **error, memory=self.memory.peaks())
        gc.collect()
        try:
            self.ranks.gather(f"{id}/{phase}/end", "error" if error else "ok",
                              FAILED_TOGETHER_S if error else MEETING_S)
            self.memory.clear()
        except Exception:  # noqa: BLE001: a lost rank or a dead context: nothing more can be measured here
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(LOST)

    def describe(self, error):
        """Kind and text of an error; frees the frames that hold its tensors."""
        is_memory = isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error).lower()
        where = traceback.extract_tb(error.__traceback__)
        ours = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in where][-8:]
        traceback.clear_frames(error.__traceback__)
        return {"kind": "out_of_memory" if is_memory else "error", "type": type(error).__name__,
                "error": str(error)[:600], "where": ours}

    def in_time(self, reserve):
        """The same answer on all ranks: rank 0 decides."""
        answer = time.time() + reserve < self.deadline
        self.decisions = getattr(self, "decisions", 0) + 1
        return self.ranks.gather(f"in_time/{self.decisions}", answer)[0] == "True"

    def run(self, to_time, to_trace):
        for id in to_time:
            reserve = sum(self.costs.values()) + TRACE_BASE_S * len(to_trace) + 3
            reserve += COMPILE_S if self.known[id].compile != "none" else 0
            if not self.in_time(reserve):
                break
            self.one("timing", id, self.time_step)
        for id in [*to_trace, *self.costs] if self.traces else ():
            if not self.in_time(1):
                break
            self.one("trace", id, self.trace_step)

    def environment(self):
        on_gpu = self.device.type == "cuda"
        names = ("NCCL_", "TORCH_", "PYTORCH_", "CUDA_", "NVSHMEM_", "OMP_")
        return {"torch": torch.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0],
                "nccl": ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None,
                "cudnn": torch.backends.cudnn.version() if on_gpu else None, "driver": self.nvml.driver(),
                "gpu": torch.cuda.get_device_name() if on_gpu else None, "gpus": self.nvml.count(),
                "cpus": os.cpu_count(),
                "variables": {key: value for key, value in sorted(os.environ.items()) if key.startswith(names)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", default="", help="ids, comma-separated")
    parser.add_argument("--trace", default="", help="ids timed by an earlier process")
    parser.add_argument("--out", required=True)
    parser.add_argument("--parent", type=int, default=0, help="ends with this process")
    parser.add_argument("--deadline", type=float, required=True, help="seconds since the epoch")
    parser.add_argument("--attempt", type=int, default=0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--plans", default="", help="a file: configurations of scenarios, their steps and repetitions")
    parser.add_argument("--no-trace", action="store_true", help="timings only")
    parser.add_argument("--trial", action="store_true", help="all models at a tiny size")
    arguments = parser.parse_args()
    end_with(arguments.parent)
    worker = Worker(arguments)
    if worker.ranks.rank == 0:
        worker.write("environment", "", environment=worker.environment())
    split = lambda text: [one for one in text.split(",") if one]
    worker.run(split(arguments.time), split(arguments.trace))
    worker.lines.close()
    worker.ranks.leave(FAILED_TOGETHER_S)
    sys.stdout.flush()
    os._exit(0)  # no teardown of communicators: it can hang, and nothing is left to save


if __name__ == "__main__":
    main()
