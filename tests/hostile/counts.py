#!/usr/bin/env python3
"""The counts of the hostile test: random rows, programs, machine files and mutated inputs, by many processes for a given time.

counts.py BUILD SCRATCH [--seconds S] [--jobs N] [--seed K] [--only KIND...]

BUILD is a build directory, sanitized, or one that has its programs side by side: foretrace, many_rows,
simulator_property_test, fuzz_readers, and many_commands where there is one. A process does a piece of one kind; the kind that is furthest from its goal goes
next, until all goals are reached or the time is over. Prints how many there were of each kind, and each finding
with the command that shows it again; exit code 1 where there is one."""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACES = {"foretrace": "sim", "many_rows": "tests/properties", "simulator_property_test": "tests/properties",
          "fuzz_readers": "tests/fuzz", "many_commands": ""}
READERS = ("part", "composition", "transfer", "serving", "nvbandwidth", "nccl_tests_log", "nccl_tests_csv", "calls", "kernel_table", "host", "page",
           "chakra", "simai")  # and any other that --only names
FEW = {"transfer": 20_000, "transfer_judge": 2_000}  # each of its inputs makes the machines that it names
PROPERTIES = 4  # of a program each
ROWS, PROGRAMS, FILES, RUNS, SECONDS = 1500, 60, 150, 100_000, 15  # of a piece: so many, or seconds; half a minute at most


def number_in(pattern, text):
    return sum(int(found) for found in re.findall(pattern, text))


class Kind:
    """What a piece runs, how its output counts, and how many are asked."""

    def __init__(self, name, goal, command, count, environment=lambda seed: {}):
        self.name, self.goal, self.command, self.count, self.environment = name, goal, command, count, environment
        self.done = self.pieces = self.under_way = 0
        self.seconds = 0.0

    def lacks(self):
        """Of its goal, what neither is done nor being done; pieces are as large as they were."""
        piece = self.done / self.pieces if self.pieces else 0
        return 1 - (self.done + piece * self.under_way) / self.goal - 1e-6 * self.under_way


def kinds_of(options, program):
    def fuzz(reader):
        environment = {} if reader in ("part", "composition", "transfer", "transfer_judge") else {"FORETRACE_MACHINES": str(ROOT / "tests/fuzz/machines")}
        return Kind(f"inputs of the reader {reader}", FEW.get(reader, 1_000_000),
                    lambda seed, scratch: [program("fuzz_readers"), reader, "--runs", str(RUNS), "--seconds", str(SECONDS), "--seed", str(seed),
                                           "--longest", "8192" if reader == "transfer_judge" else "1024",
                                           "--last", str(scratch / "last"), str(ROOT / "tests/fuzz/corpus" / reader)],
                    lambda out: number_in(r"(\d+) mutations", out), lambda seed: environment)

    forks = ["--forks"] if pathlib.Path(program("many_commands")).exists() else []
    kinds = {
        "rows": Kind("random rows of operations", 1_000_000,
                     lambda seed, scratch: [program("many_rows"), str(ROWS), str(seed), str(scratch)],
                     lambda out: number_in(r": (\d+) rows in", out)),
        "programs": Kind("random programs", 100_000,
                         lambda seed, scratch: [program("simulator_property_test"), "--gtest_brief=1"],
                         lambda out: PROGRAMS * PROPERTIES,
                         lambda seed: {"RC_PARAMS": f"seed={seed} max_success={PROGRAMS}"}),
        "machines": Kind("random machine files", 100_000,
                         lambda seed, scratch: [sys.executable, str(HERE / "random_test.py"), program("foretrace"), str(scratch / "work"),
                                                "--only", "machine_file", "machine_part", "--most", str(FILES), "--seconds", "1e9",
                                                "--seed", str(seed), "--sanitized", "--jobs", "1", *forks],
                         lambda out: number_in(r"^(\d+) commands", out)),
    }
    kinds |= {reader: fuzz(reader) for reader in READERS}
    for name in options.only:
        kinds.setdefault(name, fuzz(name))
    return [kinds[name] for name in options.only or kinds]


def run(kind, seed, scratch, until):
    """Count, seconds, and what was found."""
    scratch.mkdir(parents=True)
    begin = time.monotonic()
    words = kind.command(seed, scratch)
    environment = kind.environment(seed)
    try:
        done = subprocess.run(words, cwd=scratch, capture_output=True, text=True, errors="replace", env=os.environ | environment,
                              timeout=max(1.0, until - begin), check=False)
    except subprocess.TimeoutExpired:  # a piece that does not end before the time does is no part of the count
        return 0, time.monotonic() - begin, ""
    said = "".join(f"{name}={value!r} " for name, value in environment.items()) + " ".join(words)
    finding = "" if done.returncode == 0 else f"exit code {done.returncode}: {said}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return (0 if finding else kind.count(done.stdout)), time.monotonic() - begin, finding


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=int(datetime.date.today().strftime("%Y%m%d")), help="default: the day's")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="rows, programs, machines, or readers of tests/fuzz")
    options = parser.parse_args()
    os.environ.setdefault("ASAN_OPTIONS", "intercept_tls_get_addr=0:detect_leaks=0:malloc_context_size=2:quarantine_size_mb=1:"
                                          "thread_local_quarantine_size_kb=64:max_malloc_fill_size=16")  # pages that are touched cost a third of the time
    os.environ.setdefault("FORETRACE_DATA", str(ROOT))

    def program(name):
        beside = options.build.resolve() / name
        return str(beside if beside.exists() else options.build.resolve() / PLACES[name] / name)

    kinds = kinds_of(options, program)
    scratch = options.scratch.resolve()
    begin = time.monotonic()
    until = begin + options.seconds
    findings, number = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {}
        while running or number == 0:
            while len(running) < options.jobs and time.monotonic() < until:
                kind = max(kinds, key=Kind.lacks)
                if kind.lacks() <= 0:
                    break
                kind.under_way += 1
                number += 1
                seed = options.seed * 100_000 + number
                running[pool.submit(run, kind, seed, scratch / str(number), until)] = kind
            if not running:
                break
            for ended in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                kind = running.pop(ended)
                count, seconds, finding = ended.result()
                kind.under_way -= 1
                kind.pieces += count > 0
                kind.done += count
                kind.seconds += seconds
                if finding:
                    findings.append(finding)
                    print("FOUND", kind.name, finding, flush=True)
    for kind in kinds:
        print(f"{kind.name}: {kind.done} in {kind.pieces} pieces, {kind.seconds:.0f} s of a processor")
    print(f"{len(findings)} findings in {time.monotonic() - begin:.0f} s by {options.jobs} processes, seed {options.seed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
