"""measure: runs a round on this machine's GPUs, in few process launches, and keeps what matters."""

import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from generate import read_rows, write_rows

COLUMNS = ["program", "region", "instance", "process", "start", "median_us", "min_us", "max_us",
           "samples", "launch_us"]
FAILED = ["program", "start", "exit_code", "reason"]
LOOK_S = 0.2  # how often it looks whether the time is used up
MEASURING = re.compile(r"^\[\d+/\d+\] (\S+): measuring", re.MULTILINE)


def groups_of(programs, directory=None):
    """Lists of programs that one process launch can measure together; a cold one stands alone."""
    groups = collections.defaultdict(list)
    for row in programs:
        alone = row["file"] if directory and is_cold(directory / row["file"]) else ""
        groups[int(row["processes"]), row["environment"], needs_peers_apart(row), alone].append(row)
    return [group for _, group in sorted(groups.items())]


def is_cold(file):
    """Whether its first pass is the one that is timed: it wants a start of its own."""
    if not file.exists():
        return False  # the harness says so
    return re.search(r"^warmup: *0\b", file.read_text(), re.MULTILINE) is not None


def needs_peers_apart(row):
    """Peer access stays on in a process, whoever asked for it, NCCL too: programs without it go
    first, in a start of their own. In rounds 2 and 4 one of them ran with it, and was 3 to 9 times
    as fast."""
    return int(row.get("peers") == "with")


class Round:
    """One run of `measure`: what is left to do, what failed, how much time there is."""

    def __init__(self, directory, out, harness, launcher, repetitions, budget_s):
        self.directory, self.out = pathlib.Path(directory), pathlib.Path(out)
        self.harness, self.launcher, self.repetitions = harness, launcher.split(), repetitions
        self.end = time.monotonic() + budget_s
        self.rows, self.failed, self.machines = [], [], {}
        self.out.mkdir(parents=True, exist_ok=True)
        self.log = open(self.out / "log.txt", "w", encoding="utf-8")

    def measure(self, programs, starts):
        begin = time.monotonic()
        for start in range(1, starts + 1):
            at = time.monotonic()
            with tempfile.TemporaryDirectory() as runs:
                for group in groups_of(programs, self.directory):
                    self.measure_group(group, start, pathlib.Path(runs))
                self.collect(programs, start, pathlib.Path(runs))
            self.write()
            done = len({row["program"] for row in self.rows if row["start"] == start})
            self.say(f"start {start}: {done} of {len(programs)} programs, "
                     f"{time.monotonic() - at:.1f} s")
        self.say(f"total: {time.monotonic() - begin:.1f} s, {len(self.failed)} failures")

    def say(self, line):
        print(line, flush=True)
        print(line, file=self.log, flush=True)

    def measure_group(self, group, start, runs):
        """One process launch, and another one behind each program that fails."""
        again = [row for row in group if self.failures(row["program"]) < 2]
        while again:
            if self.left() <= 1:
                self.fail(again, start, "", "not tried: the time was used up")
                return
            files = [str(self.directory / row["file"]) for row in again]
            command = [*self.launcher, "-n", again[0]["processes"], self.harness, "measure", *files,
                       "-o", str(runs), "--repetitions", str(self.repetitions), "--traced", "0",
                       "--no-check", "--timeout", "10s", "--start-label", f"start {start}"]
            code, text = self.run(command)
            if code == 0:
                return
            names = [row["program"] for row in again]
            begun = MEASURING.findall(text)
            at = names.index(begun[-1]) if begun else self.named_in(text, again)
            if at is None:
                self.fail(again, start, code, text)
                return
            self.fail([again[at]], start, code, text)
            # What it measured before has its results; without a beginning, nothing has.
            again = again[at + 1:] if begun else again[:at] + again[at + 1:]

    def left(self):
        """Seconds."""
        return self.end - time.monotonic()

    def run(self, command):
        """Exit code and text of a command; it is ended when the time is used up."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, errors="replace") as process:
            text = None
            while text is None:
                try:
                    text = process.communicate(timeout=LOOK_S)[0]
                except subprocess.TimeoutExpired:
                    if self.left() <= 0:
                        process.terminate()
                        text = process.communicate()[0] + "\nended: the time was used up"
        self.log.write(text)
        return process.returncode, text

    @staticmethod
    def named_in(text, rows):
        """The program whose file an error names, before anything was measured."""
        for at, row in enumerate(rows):
            if row["file"] in text:
                return at
        return None

    def failures(self, program):
        return sum(row["program"] == program for row in self.failed)

    def fail(self, rows, start, code, text):
        lines = [line.strip() for line in text.splitlines()
                 if line.strip() and not line.startswith(("[", "--"))]
        told = [line for line in lines if "error" in line or "hang" in line] or lines
        for row in rows:
            self.failed.append(dict(zip(FAILED, [row["program"], start, code,
                                                 " | ".join(told[:4])[:400]])))

    def collect(self, programs, start, runs):
        for row in programs:
            timeline = runs / row["program"] / "measured.timeline.json"
            timeline = json.loads(timeline.read_text()) if timeline.exists() else None
            # A program that failed leaves a result, too: it says so, and is no measurement.
            if timeline is None or timeline.get("outcome", {}).get("kind") != "completed":
                if not any(one["program"] == row["program"] and one["start"] == start
                           for one in self.failed):
                    self.fail([row], start, "", "left out: it failed twice before"
                              if self.failures(row["program"]) else "no result, and no error")
                continue
            self.rows += rows_of(row["program"], start, timeline)
            if start not in self.machines:
                self.machines[start] = machine_of(timeline["starts"], runs)

    def write(self):
        write_rows(self.out / "measured.csv", COLUMNS, self.rows)
        write_rows(self.out / "failed.csv", FAILED, self.failed)
        (self.out / "environment.json").write_text(json.dumps(self.machines, indent=1) + "\n")


def machine_of(starts, runs):
    """The process launches of a result, with their environments in full."""
    environments = {}
    for one in starts:
        key = one["environment"]
        environments[key] = json.loads((runs / "environments" / f"{key}.json").read_text())
    return {"starts": starts, "environments": environments}


def launch_us(timeline):
    """Of the result's start, the mean over its processes; empty where it does not say."""
    launches = timeline["starts"][-1].get("launch_ns", [])
    return f"{statistics.mean(launches) / 1000:.3f}" if launches else ""


def rows_of(program, start, timeline):
    rows = []
    launch = launch_us(timeline)
    for region in timeline["regions"]:
        times = [ns / 1000 / region["per"] for ns in region["samples_ns"]]
        values = [statistics.median(times), min(times), max(times)]
        rows.append(dict(zip(COLUMNS, [program, region["name"], region["instance"],
                                       region["process"], start,
                                       *(f"{value:.3f}" for value in values), len(times),
                                       launch])))
    return sorted(rows, key=lambda row: (row["region"], row["instance"], row["process"]))


def gpus_here():
    """GPUS, or how many nvidia-smi lists."""
    if "GPUS" in os.environ:
        return int(os.environ["GPUS"])
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"nvidia-smi does not say how many GPUs there are ({error}): set GPUS=")
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def measure(directory, out, starts):
    """Measures what this machine has the GPUs for; returns the number of failures."""
    gpus = gpus_here()
    every = read_rows(pathlib.Path(directory) / "programs.csv")
    programs = [row for row in every if int(row["gpus"]) <= gpus]
    for row in programs:
        text = (pathlib.Path(directory) / row["file"]).read_text()
        asks = any(word in text for word in ("enable_peer_access", "communicators:"))
        row["peers"] = "with" if asks else "without"
    run = Round(directory, out, os.environ.get("FORETRACE_HW", "foretrace-hw"),
                os.environ.get("MPIEXEC", "mpirun --bind-to none"),
                int(os.environ.get("REPETITIONS", "10")), float(os.environ.get("BUDGET", "540")))
    run.say(f"{gpus} GPUs: {len(programs)} of {len(every)} programs")
    run.measure(programs, starts)
    return len(run.failed)
