#!/usr/bin/env python3
"""Measures training steps as PyTorch users write them: step time, peak memory, a summary of the trace.

    python3 hw/pytorch/train.py -o OUT [--gpus N] [--seconds S] [--only ID...]
    python3 hw/pytorch/train.py --list

Runs many configurations in one process for each number of GPUs, and starts a new process behind one that
brought its process down. OUT/results.jsonl has a line for each configuration, OUT/traces.tar the whole
traces of some, OUT/summary.json what was not run. README.md says what the numbers mean.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from steps.configurations import all_configurations  # noqa: E402
from gpu import Nvml  # noqa: E402

SILENT_S = {"none": 75, "compile": 180}  # without a new line for so long, a process hangs
SHARES = {4: 0.55, 2: 0.55, 1: 0.75}  # of the time that is left, by GPUs, for a batch that others follow
LARGEST_TRACE, LARGEST_TRACES = 4 << 20, 15 << 20
OUT_OF_TIME = "out of time"
LEAST_S = 15  # below this no process is started


class Parts:
    """What the workers have written so far: for each configuration and rank its parts."""

    def __init__(self, out):
        self.out, self.lines = out, []
        for file in sorted(out.glob("parts.rank*.jsonl")):
            rank = int(file.stem.rsplit("rank", 1)[1])
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    self.lines.append((rank, json.loads(line)))
                except ValueError:
                    pass  # cut off by the end of its process

    def has(self, id, part, phase=None):
        return any(line["id"] == id and line["part"] == part and phase in (None, line.get("phase"))
                   for _, line in self.lines)

    def started(self, phase):
        """Ids whose `phase` has begun and neither ended nor failed."""
        begun = [line["id"] for _, line in self.lines if line["part"] == "begin" and line["phase"] == phase]
        return [id for id in dict.fromkeys(begun) if not self.has(id, phase) and not self.has(id, "error", phase)]

    def result(self, c, gpu):
        """The line of results.jsonl for one configuration."""
        ranks = {}
        for rank, line in self.lines:
            if line["id"] == c.id and line["part"] in ("timing", "trace", "error"):
                values = line[line["part"]] if line["part"] != "error" else \
                    {key: value for key, value in line.items() if key not in ("part", "id", "attempt")}
                ranks.setdefault(str(rank), {})[line["part"]] = values
        errors = [rank["error"] for rank in ranks.values() if "error" in rank]
        timed = len([rank for rank in ranks.values() if "timing" in rank]) == c.ranks
        memory = any(error["kind"] == "out_of_memory" for error in errors if error["phase"] == "timing")
        verdict = "out_of_memory" if memory else "measured" if timed else "failed"
        line = {"id": c.id, "mark": c.mark, "verdict": verdict, "gpu": gpu}
        if timed:
            medians = [rank["timing"]["step_time_ms_median"] for rank in ranks.values()]
            line["step_time_ms_median"] = max(medians)
            line["free_running_ms"] = max(rank["timing"]["free_running_ms"] for rank in ranks.values())
            line["allocated_peak_bytes"] = max(rank["timing"]["memory"].get("allocated_peak_bytes") or 0
                                               for rank in ranks.values())
        return line | {"model_parameters": c.parameters, "configuration": dataclasses.asdict(c), "ranks": ranks}


def batches(chosen, gpus):
    """Lists of configurations that share a process, in order. Apart from the rest are those that fill the memory
    and those that are compiled."""
    shared = lambda ranks: [one for one in chosen if one.ranks == ranks and not one.fresh]
    groups = [shared(ranks) for ranks in sorted({one.ranks for one in chosen if one.ranks <= gpus}, reverse=True)]
    for family in dict.fromkeys(one.family for one in chosen if one.fresh):
        groups.append([one for one in chosen if one.fresh and one.family == family])
    return [group for group in groups if group]


def free_port():
    """A port whose successor is free too."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue
    raise RuntimeError("no two neighbouring free ports on 127.0.0.1")


def start(ranks, arguments, out):
    port, processes = free_port(), []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        with (out / f"log.rank{rank}.txt").open("ab") as log:
            processes.append(subprocess.Popen([sys.executable, str(HERE / "worker.py"), "--out", str(out), *arguments],
                                              env=environment, stdout=log, stderr=log))
    return processes


def wait(processes, out, silent_s, deadline):
    """Waits until all end; ends them when one failed, when nothing is written for too long, or at the deadline.
    Returns why, or an empty text."""
    sizes, since, failed_at, why = None, time.time(), None, ""
    while any(process.poll() is None for process in processes):
        time.sleep(0.1)
        now = time.time()
        found = [file.stat().st_size for file in sorted(out.glob("parts.rank*.jsonl"))]
        if found != sizes:
            sizes, since = found, now
        if any(process.poll() not in (None, 0) for process in processes):
            failed_at = failed_at or now
        if failed_at and now - failed_at > 4:
            why = "the other rank failed"
        elif now - since > silent_s:
            why = f"no result for {silent_s} s"
        elif now > deadline + 20:
            why = OUT_OF_TIME
        if why:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
    codes = [process.returncode for process in processes]
    return why or ("" if not any(codes) else f"process ended with {codes}")


def run_batch(batch, out, deadline, options):
    """Measures a batch, with a new process behind each configuration that ended its own."""
    silent_s = SILENT_S["compile" if any(one.compile != "none" for one in batch) else "none"]
    stuck = 0
    for attempt in range(8):
        parts = Parts(out)
        settled = lambda id, phase: parts.has(id, phase) or parts.has(id, "error", phase)
        to_time = [one.id for one in batch if not settled(one.id, "timing")]
        to_trace = [one.id for one in batch
                    if parts.has(one.id, "timing") and not settled(one.id, "trace") and one.id not in to_time
                    and not parts.has(one.id, "error", "timing")]
        if not (to_time or to_trace) or time.time() + LEAST_S > deadline:
            return
        processes = start(batch[0].ranks, ["--time", ",".join(to_time), "--trace", ",".join(to_trace), "--deadline",
                                           str(deadline), "--attempt", str(attempt), *options], out)
        why = wait(processes, out, silent_s, deadline)
        if not why or why == OUT_OF_TIME:
            return
        now = Parts(out)
        stuck = 0 if len(now.lines) > len(parts.lines) else stuck + 1
        if stuck == 2:
            print(f"given up: {why}; see {out}/log.rank0.txt", flush=True)
            return
        blamed = [(phase, id) for phase in ("timing", "trace") for id in now.started(phase)]
        with (out / "parts.rank0.jsonl").open("a", encoding="utf-8") as file:
            for phase, id in blamed:
                file.write("\n" + json.dumps({"part": "error", "id": id, "phase": phase, "kind": "error",
                                              "type": "process", "error": why, "where": []}) + "\n")
        print(f"restart: {why}; behind {blamed}", flush=True)


def pack_traces(out):
    """One archive instead of the directory of traces, without those that are too large: returns these."""
    total, left = 0, []
    with tarfile.open(out / "traces.tar", "a") as archive:
        for file in sorted((out / "traces").glob("*.json.gz")):
            size = file.stat().st_size
            if size > LARGEST_TRACE or total + size > LARGEST_TRACES:
                left.append({"name": file.name, "bytes": size})
                continue
            total += size
            archive.add(file, arcname=file.name)
    shutil.rmtree(out / "traces", ignore_errors=True)
    return left


def wanted(arguments):
    """The configurations that were asked for."""
    known = all_configurations()
    if arguments.only:
        known = [one for one in known if one.id in arguments.only]
    if arguments.family:
        known = [one for one in known if one.family in arguments.family]
    return known


def choose(arguments, gpus, gpu):
    """Those that are due on this machine."""
    return [one for one in wanted(arguments) if one.ranks <= gpus and (not one.only_on or one.only_on in (gpu or ""))]


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", help="directory of the results")
    parser.add_argument("--list", action="store_true", help="print the configurations and stop")
    parser.add_argument("--json", action="store_true", help="with --list: a line of JSON each, to predict them")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these configurations only")
    parser.add_argument("--family", nargs="+", metavar="NAME", help="these families only")
    parser.add_argument("--gpus", type=int, help="GPUs to use; default: all that there are")
    parser.add_argument("--seconds", type=float, default=1e6, help="stop cleanly after this time")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: for trials")
    parser.add_argument("--trial", action="store_true", help="all models at a tiny size: measures nothing")
    parsed = parser.parse_args(arguments)
    if not parsed.list and not parsed.out:
        parser.error("-o OUT is missing")
    unknown = sorted(set(parsed.only or ()) - {one.id for one in all_configurations()})
    if unknown:
        parser.error(f"unknown configuration {', '.join(unknown)}; --list prints them")
    return parsed


def print_list(arguments):
    for one in wanted(arguments):
        if arguments.json:
            print(json.dumps({"id": one.id, "mark": one.mark, "configuration": dataclasses.asdict(one)}))
            continue
        print(f"{one.mark:5} {one.ranks} GPU  {one.parameters / 1e6:7.0f} M parameters  {one.family:8} {one.id}")


def main():
    arguments = parse()
    if arguments.list:
        return print_list(arguments)
    nvml, begin = Nvml(), time.time()
    gpus = arguments.gpus or nvml.count()
    if not gpus:
        sys.exit("train.py: no GPU found; --gpus N says how many to use")
    gpu, deadline = nvml.name(0), begin + arguments.seconds
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    chosen, written = choose(arguments, gpus, gpu), set()
    groups = batches(chosen, gpus)
    options = ["--device", arguments.device] + (["--trial"] if arguments.trial else [])
    with (out / "results.jsonl").open("a", encoding="utf-8") as results:
        for index, batch in enumerate(groups):
            share = SHARES[batch[0].ranks] if index + 1 < len(groups) else 1.0
            run_batch(batch, out, time.time() + share * (deadline - time.time()), options)
            parts = Parts(out)
            for one in batch:
                if parts.has(one.id, "timing") or parts.has(one.id, "error", "timing"):
                    line = parts.result(one, gpu)
                    results.write(json.dumps(line) + "\n")
                    results.flush()
                    written.add(one.id)
                    print(f"{time.time() - begin:6.1f} s  {line['verdict']:13} {one.id}  "
                          f"{line.get('step_time_ms_median', '')} ms", flush=True)
    left = pack_traces(out)
    environments = [line["environment"] for _, line in Parts(out).lines if line["part"] == "environment"]
    summary = {"gpu": gpu, "gpus": gpus, "environment": environments[0] if environments else None,
               "seconds": round(time.time() - begin, 1), "measured": len(written),
               "not_run": [one.id for one in chosen if one.id not in written], "traces_left_out": left}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(f"{len(written)} configurations in {summary['seconds']} s, not run: {summary['not_run']}")


if __name__ == "__main__":
    main()
