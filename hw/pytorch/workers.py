"""Starts worker.py for every rank, waits for it, and starts it again behind a configuration that ended it; reads what the
workers have written. Needs no PyTorch."""

import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from result import write_text_whole

HERE = pathlib.Path(__file__).resolve().parent
SILENT_S = {"none": 75, "compile": 180}  # without a new line for so long, a process hangs
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

    def environment(self):
        """Of the last process that began; empty where none did."""
        found = [line["environment"] for _, line in self.lines if line["part"] == "environment"]
        return found[-1] if found else {}

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


def forget(out, ids):
    """What was measured of these configurations before is no part of what comes."""
    for file in [*out.glob("parts.rank*.jsonl"), *out.glob("results.jsonl")]:
        kept = []
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            try:
                kept += [line] if json.loads(line)["id"] not in ids else []
            except ValueError:
                pass  # cut off by the end of its process
        write_text_whole(file, "".join(kept))


def start(ranks, arguments, out, environment=()):
    port, processes = free_port(), []
    for rank in range(ranks):
        variables = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)) | dict(environment)
        with (out / f"log.rank{rank}.txt").open("ab") as log:
            processes.append(subprocess.Popen([sys.executable, str(HERE / "worker.py"), "--parent", str(os.getpid()), "--out", str(out),
                                               *arguments],
                                              env=variables, stdout=log, stderr=log))
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


def run_batch(batch, out, deadline, options, environment=(), timeout=None):
    """Measures a batch, with a new process behind each configuration that ended its own."""
    silent_s = timeout or SILENT_S["compile" if any(one.compile != "none" for one in batch) else "none"]
    stuck = 0
    for attempt in range(8):
        parts = Parts(out)
        settled = lambda id, phase: parts.has(id, phase) or parts.has(id, "error", phase)
        to_time = [one.id for one in batch if not settled(one.id, "timing")]
        to_trace = [one.id for one in batch
                    if parts.has(one.id, "timing") and not settled(one.id, "trace") and one.id not in to_time
                    and not parts.has(one.id, "error", "timing") and "--no-trace" not in options]
        if not (to_time or to_trace) or time.time() + LEAST_S > deadline:
            return
        processes = start(batch[0].ranks, ["--time", ",".join(to_time), "--trace", ",".join(to_trace), "--deadline",
                                           str(deadline), "--attempt", str(attempt), *options], out, environment)
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
