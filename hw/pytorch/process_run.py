"""One process's part of a run: passes that begin in all processes at once, their samples, and the traced pass."""

import gzip
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist

import spans
from calls import NOT_RUN, STAND_INS, Calls, OperationFailed
from host_thread import HostThread
from meeting import Barriers, NotMet
from objects import Objects
from program import ProgramError
from result import regions, timeline, write_whole

BRACKETS = 20


class ProcessRun:
    def __init__(self, program, ranks, name):
        self.program, self.ranks, self.process, self.name = program, ranks, ranks.rank, name
        self.passes, self.failure, self.meetings, self.may_begin = 0, None, 0, False
        parties = [len(barrier["parties"]) for barrier in program.barriers]
        self.barriers = Barriers(name, parties + [ranks.size])  # the last one: of passes
        self.meet("opened")
        self.barriers.unlink()
        self.objects = Objects(program, ranks)
        self.threads = []
        for thread in program.threads_of(self.process):
            calls = Calls(self.objects, self.barriers, thread)
            self.threads.append(HostThread(program, calls, thread, self.process))

    def meet(self, what, value=""):
        self.meetings += 1
        return self.ranks.gather(f"{self.name}/{self.meetings}/{what}", value)

    def together(self):
        """All processes leave at once."""
        self.barriers.arrive_and_wait(len(self.program.barriers), self.process)

    def run(self, traced=False):
        """One pass."""
        self.objects.before_pass()
        self.may_begin = False
        workers = [threading.Thread(target=self._work, args=(one, traced), daemon=True) for one in self.threads[1:]]
        for worker in workers:
            worker.start()
        self.together()
        self.may_begin = True
        if self.threads:
            self._guarded(self.threads[0], traced)
        for worker in workers:
            worker.join()
        if self.failure:
            raise self.failure
        self.objects.after_pass()
        self.passes += 1

    def _work(self, thread, traced):
        while not self.may_begin:
            time.sleep(0)
        self._guarded(thread, traced)

    def _guarded(self, thread, traced):
        try:
            torch.cuda.set_device(self.objects.devices[0])
            with torch.no_grad():
                thread.run(traced)
        except Exception as error:  # noqa: BLE001: it must not end on a thread of its own
            self.failure = self.failure or OperationFailed(f"process {self.process}, {thread.place()}: {error}")

    def times(self):
        return {f"{op} {instance}": value for one in self.threads for (op, instance), value in one.times().items()}

    def traced_pass(self):
        """PyTorch's profile of a pass."""
        import torch.profiler as profiler
        every = torch._C._profiler._ExperimentalConfig(profile_all_threads=len(self.threads) > 1)  # noqa: SLF001
        activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
        with profiler.profile(activities=activities, experimental_config=every, acc_events=True) as profile:
            self.brackets()
            self.run(traced=True)
        return profile

    def trace_of(self, profile):
        """What spans.build() wants of a process."""
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "trace.json"
            profile.export_chrome_trace(str(path))
            opened = gzip.open if path.read_bytes()[:2] == b"\x1f\x8b" else open
            with opened(path, "rt", encoding="utf-8") as file:
                trace = json.load(file)
        return self.read_trace(trace)

    def brackets(self):
        """Launches that are waited for: they bound the clocks' difference."""
        for device in self.objects.devices:
            with torch.cuda.device(device):
                for turn in range(BRACKETS):
                    with torch.profiler.record_function(f"foretrace {len(self.program.rows)} {turn}"):
                        torch.cuda._sleep(1)  # noqa: SLF001
                        torch.cuda.synchronize()

    def read_trace(self, trace):
        work, strangers = spans.device_work(trace)
        bracket = len(self.program.rows)
        names, brackets = self._thread_names(trace), spans.brackets_of(trace, work, bracket)
        calls = [(begin, end, op, instance, names.get(thread, "main"))
                 for begin, end, op, instance, thread in spans.annotations(trace) if op != bracket]
        streams = {f"{op} {instance}": number for one in self.threads for (op, instance), number in one.streams.items()}
        grouped = {key: first for one in self.threads for key, first in one.grouped.items()}
        work = [(begin, end, *grouped.get((op, instance), (op, instance)), kernel)
                for begin, end, op, instance, kernel in work if op != bracket]
        return {"process": self.process, "began": min((one[0] for one in calls), default=0), "calls": calls,
                "work": work, "streams": streams, "strangers": strangers,
                "clock_error_ns": spans.clock_error(brackets), "times": self.times()}

    def _thread_names(self, trace):
        """By the trace's thread ids: an operation stands in one thread of a process."""
        owner = {id: one.name for one in self.threads for id in one.kinds}
        return {thread: owner[op] for _, _, op, _, thread in spans.annotations(trace) if op in owner}


def versions():
    return {"cuda": torch.version.cuda, "nccl": ".".join(map(str, torch.cuda.nccl.version())), "torch": torch.__version__}


STARTS = [0]  # of programs in this process: two of the same hash must not meet each other


def run_program(program, arguments, ranks, target, watchdog):
    """Exit code: 0, or 1 when an operation failed."""
    local = int(os.environ.get("LOCAL_RANK", ranks.rank)) * program.devices
    STARTS[0] += 1
    name = f"{os.environ.get('MASTER_PORT', os.getpid())}-{STARTS[0]}-{program.document['scenario']['program_hash'][:8]}"
    run, problem = None, ""
    try:
        if local + program.devices > torch.cuda.device_count():
            raise ProgramError(f"process {ranks.rank} needs GPU {local + program.devices - 1}, and there are "
                               f"{torch.cuda.device_count()}")
        if program.communicators and not dist.is_initialized():
            alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1} if ranks.size == 1 else {}
            dist.init_process_group("nccl", device_id=torch.device("cuda", local), **alone)
        run = ProcessRun(program, ranks, name)
    except NotMet:
        raise
    except (ProgramError, RuntimeError) as error:
        problem = f"{error}" or repr(error)
    for told in ranks.gather(f"{name}/ready", problem):
        if told:
            raise ProgramError(told)  # in every process: none waits for another
    machine = f"{program.processes * program.devices} x {torch.cuda.get_device_name(local)}"
    noted = versions()

    def end(outcome, lines):
        print(f"{program.name}: {outcome}", *lines, sep="\n  ", file=sys.stderr)
        write_whole(target, timeline(program, machine, noted, (outcome, lines)))

    def stuck(lines):
        """One thread may have failed while another waits for it."""
        end("failed" if run.failure else "timeout", [str(run.failure)] * bool(run.failure) + lines)

    guard = watchdog(arguments.timeout, run, stuck)
    try:
        guard.armed = True
        for _ in range(program.warmup):
            run.run()
        passes = []
        for _ in range(arguments.repetitions):
            run.run()
            passes.append(run.times())
        guard.armed = False
        samples = run.meet("samples", json.dumps(passes))
        traces = []
        if not arguments.no_trace:
            guard.armed = True
            profile = run.traced_pass()
            guard.armed = False
            mine = run.trace_of(profile)
            traces = [json.loads(one) for one in run.meet("trace", json.dumps(mine))]
    except (OperationFailed, RuntimeError) as error:  # torch's own errors are RuntimeErrors
        end("failed", [str(error)])
        os._exit(1)  # the context may be lost, and others may wait for it
    if ranks.rank == 0:
        noted |= {f"not_run_{kind}": f"{count} a pass: {NOT_RUN[kind]}" for kind, count in counted(run, "not_run").items()}
        stood = {f"stand_in_{kind}": f"{count} a pass: {STAND_INS[kind]}" for kind, count in counted(run, "stand_ins").items()}
        for kind, words in stood.items():
            print(f"{program.name}: note: {kind}: {words}", file=sys.stderr)
        noted |= stood
        strangers = sum(one["strangers"] for one in traces)
        if strangers:
            noted["device_records_of_no_operation"] = str(strangers)
        rows = regions(program, {rank: json.loads(one) for rank, one in enumerate(samples)},
                       {one["process"]: one["times"] for one in traces})
        built = spans.build(program, traces) if traces else ((), (), ())
        write_whole(target, timeline(program, machine, noted, rows=rows, built=built,
                                     clock_error_ns=max((one["clock_error_ns"] for one in traces), default=0)))
        print(target)
    return 0


def counted(run, which):
    """Of this process's threads: how often a pass, by kind."""
    counts = {}
    for thread in run.threads:
        for kind, count in getattr(thread.calls, which).items():
            counts[kind] = counts.get(kind, 0) + count
    return counts
