#!/usr/bin/env python3
"""Every command that writes is killed at random moments; no old result may be lost.

kill_test.py FORETRACE FILE_CALLS SCRATCH [--moments N] [--seed K]

A command first writes its results whole, then writes them anew from other input and is killed: half of
the moments are times, half are calls that change a file (FILE_CALLS, loaded by LD_PRELOAD, kills the
process before the call). Afterwards each result is the old one or the new one, byte by byte, and the
same command then runs to its end. With it the substitute for a power failure: from the log of the calls,
whatever of them had not reached the disk is taken to be lost, at every moment; the results are still old
or new. Exit code 1 and a line for each thing that was lost.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

SCENARIO = "scenarios/examples/prefetch_two_streams.yaml"
MEASURED = "reports/measured/prefetch_two_streams/measured.timeline.json"
FIT = ("fit reports/measured/calibrate_threads --machine h200-nvswitch-8 -o made.yaml --without gpu --without copy"
       " --without kernel --without gemm --without nccl")
PLAN = ("plan gpt2 --gpus 2 --sequence 1024 --keep tensor=1 --keep pipeline=1 --keep micro=1 --keep recompute=none"
        " --top 1 -o made.html -o made.json -o made.csv --write-scenario 1 made.yaml")
SWEEP = "sweep scenarios/nccl/all_reduce.yaml --set large=1MiB,4MiB"
TRACE = Path(__file__).parent.parent / "fuzz/corpus/kineto/all_reduce_between_kernels.json"
MANY = 200  # moments; with fewer, commands that take seconds are left out


PYTHON_PACKAGE = Path(__file__).resolve().parent.parent.parent / "scenarios/pytorch"
# What `python3 -m foretrace capture` writes and by which functions, without the PyTorch program that it runs before: as many lines as a step has.
WRITE_CAPTURE = """
import sys
from foretrace import record, scenario
length, ranks = int(sys.argv[1]), (0, 4)
for rank in ranks:
    record.write(f"made/rank{rank}.calls.jsonl.gz", [f'{{"k":"launch","n":{i * length % 997},"t":{i}}}' for i in range(length)])
scenario.write_scenario("made", f"of_{length}", 8, ranks)
"""


class Command:
    """Writes `results`; two ways to call it write different ones. `python`: what runs instead of foretrace. `spoiled`: results that say
    nothing true beside others that are new, so that they go with the old ones."""

    def __init__(self, name, old, new, results, share=1.0, slow=False, python=None, spoiled=()):
        self.name, self.old, self.new, self.results, self.share, self.slow = name, old, new, results, share, slow
        self.python, self.spoiled = python, set(spoiled)


COMMANDS = [
    Command("simulate",
            f"simulate {SCENARIO} --machine h200-nvswitch-8 -o made",
            f"simulate {SCENARIO} --machine h100-nvswitch-8 -o made",
            ["made/predicted.timeline.json", "made/trace.pftrace"], 2.0),
    Command("compare", "compare run --tolerance 10% -o answer", "compare run --format json -o answer", ["answer"]),
    Command("assert", "assert run -o answer", "assert run --format json -o answer", ["answer"]),
    Command("order", "order run -o answer", "order run --format json -o answer", ["answer"]),
    Command("report", "report run -o made.html", "report run/measured.timeline.json -o made.html", ["made.html"]),
    Command("report --svg", "report run --svg made.svg", "report run --svg made.svg --svg-until 1ms", ["made.svg"]),
    Command("export perfetto", "export run --to perfetto -o made.pftrace",
            "export run/measured.timeline.json --to perfetto -o made.pftrace", ["made.pftrace"]),
    Command("export csv", "export run --to csv -o made.csv", "export run/measured.timeline.json --to csv -o made.csv",
            ["made.csv"]),
    Command("nccl-tests", "nccl-tests all_reduce -b 1K -e 4K --processes 2 --output made.txt",
            "nccl-tests all_gather -b 1K -e 4K --processes 2 --output made.txt", ["made.txt"]),
    Command("accept", "accept run/measured.timeline.json -o answer", "accept run/measured.timeline.json --format json -o answer", ["answer"]),
    Command("nccl-tuner", "nccl-tuner all_reduce -b 1M -e 4M --processes 2 --tuner made.conf",
            "nccl-tuner all_gather -b 1M -e 4M --processes 2 --tuner made.conf", ["made.conf"]),
    Command("nccl-tests --scenario", "nccl-tests all_reduce --processes 2 --scenario made.yaml",
            "nccl-tests all_gather --processes 2 --scenario made.yaml", ["made.yaml"]),
    Command("figures", "figures reports/published/d2l_12_3.csv --machine v100-pcie-4 -o answer",
            "figures reports/published/d2l_12_3.csv --machine v100-pcie-4 --format json -o answer", ["answer"]),
    Command("fit --residuals",
            "fit reports/measured/calibrate_copies --machine h200-nvswitch-8 --judge --residuals made.csv",
            "fit reports/measured/calibrate_copies --machine h100-nvswitch-8 --judge --residuals made.csv", ["made.csv"]),
    Command("accuracy", "accuracy --blind-only -o made.md", "accuracy --blind-only --blind rounds -o made.md",
            ["made.md"]),
    Command("plan", f"{PLAN} --global-batch 8", f"{PLAN} --global-batch 16",
            ["made.html", "made.json", "made.csv", "made.yaml"], 0.5, slow=True),
    Command("explain", "explain straggler -o answer", "explain straggler --format json -o answer", ["answer"]),
    Command("sweep --csv", f"{SWEEP} --set ranks=2 -o made_2.jsonl --csv made.csv",
            f"{SWEEP} --set ranks=4 -o made_4.jsonl --csv made.csv", ["made.csv"]),
    Command("import", "import one.json -o made --scenario made.yaml", "import two.json -o made --scenario made.yaml",
            ["made/measured.timeline.json", "made.yaml"]),
    Command("machine new", "machine new --gpu A --from models/machines/gpus/L40S.yaml -o made.yaml",
            "machine new --gpu B --from models/machines/gpus/L40S.yaml -o made.yaml", ["made.yaml"]),
    Command("capture (its writing)", "20000", "30000",
            ["made/rank0.calls.jsonl.gz", "made/rank4.calls.jsonl.gz", "made/step.yaml"], python=WRITE_CAPTURE,
            spoiled=["made/step.yaml"]),
    Command("fit", f"{FIT} --name one", f"{FIT} --name two", ["made.yaml"], 0.5, slow=True),
]


def call(program, arguments, scratch, environment=None):
    environment = {**os.environ, "PYTHONPATH": str(PYTHON_PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    return subprocess.Popen([*map(str, program), *arguments.split()], cwd=scratch, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=environment)


def to_its_end(program, arguments, scratch, environment=None):
    code = call(program, arguments, scratch, environment).wait()
    if code not in (0, 1):  # 1: the answer is bad, and written
        sys.exit(f"{arguments}: exit code {code}")


def contents(scratch, results):
    return {name: (scratch / name).read_bytes() for name in results}


def put(scratch, files):
    for name, content in files.items():
        (scratch / name).write_bytes(content)


def stale_temporaries(scratch):
    return [file for pattern in (".foretrace-*.tmp", "made/.rank*", "made/.step.yaml.*") for file in scratch.rglob(pattern)]


def new_beside(scratch, command, old):
    return any((scratch / name).read_bytes() != old[name] for name in command.results if name not in command.spoiled and (scratch / name).exists())


def lost(scratch, command, old, new):
    problems = []
    for name in command.results:
        file = scratch / name
        if not file.exists():
            if name in command.spoiled:
                continue
            problems.append(f"{command.name}: {name} is gone")
        elif file.read_bytes() not in (old[name], new[name]):
            problems.append(f"{command.name}: {name} is neither the old nor the new one")
        elif name in command.spoiled and file.read_bytes() == old[name] and new_beside(scratch, command, old):
            problems.append(f"{command.name}: {name} is the old one beside new results")
    return problems


def kill_once(program, shim, scratch, command, old, new, calls, seconds, rng):
    """One moment: a time, or the n-th call that changes a file."""
    put(scratch, old)
    if rng.random() < 0.5:
        process = call(program, command.new, scratch)
        time.sleep(rng.uniform(0, 1.1 * seconds))
        moment = "a time"
    else:
        moment = f"call {rng.randint(1, calls)} of {calls}"
        process = call(program, command.new, scratch,
                       {"LD_PRELOAD": str(shim), "FILE_CALLS_END": moment.split()[1]})
        process.wait()
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    killed = process.wait() == -9
    return killed, [f"{problem} (killed at {moment})" for problem in lost(scratch, command, old, new)]


def after_power_failures(lines, results, spoiled, scratch):
    """What the disk may hold at each moment of a log of calls: the names of results that could be lost.

    Nothing is on the disk before its sync: written bytes until the file's, a rename until the
    directory's (then the old name still holds the old file; that is no loss). What a rename puts
    in a result's place must be synced whole before.
    """
    problems = []
    opened = {}   # descriptor -> path
    unsynced = {}  # path -> bytes
    result_paths = {str((scratch / name).resolve()) for name in results}

    def absolute(path):
        return str((scratch / path).resolve())

    renamed = set()
    for line in lines:
        word, *rest = line.rstrip("\n").split("\t")
        if word == "open":
            path = absolute(rest[0])
            opened[rest[2]] = path
            unsynced.setdefault(path, 0)
            if path in result_paths and ("truncate" in rest[1] or rest[1] == "old"):
                problems.append(f"{rest[0]} is opened for writing in its place")
        elif word == "write" and rest[0] in opened:
            unsynced[opened[rest[0]]] += int(rest[1])
        elif word == "sync" and rest[0] in opened:
            unsynced[opened[rest[0]]] = 0
        elif word == "close":
            opened.pop(rest[0], None)
        elif word == "rename":
            source, target = absolute(rest[0]), absolute(rest[1])
            if unsynced.get(source, 0) != 0:
                problems.append(f"{rest[1]}: {unsynced[source]} bytes are not on the disk when it gets its name")
            renamed.add(target)
        elif word == "unlink" and absolute(rest[0]) in result_paths - {absolute(name) for name in spoiled}:
            problems.append(f"{rest[0]} is removed")
    for name in results:
        if absolute(name) not in renamed:
            problems.append(f"{name} was not written under another name first")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("shim", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--moments", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    scratch = options.scratch.resolve()
    foretrace, shim = [options.program.resolve()], options.shim.resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    root = Path(subprocess.run([str(foretrace[0]), "list", "data"], capture_output=True, text=True, check=True).stdout.strip())
    for name in ("scenarios", "models", "reports"):
        (scratch / name).symlink_to(root / name)
    to_its_end(foretrace, f"simulate {SCENARIO} --machine h200-nvswitch-8 -o run", scratch)
    shutil.copy(scratch / MEASURED, scratch / "run")
    to_its_end(foretrace, "simulate scenarios/explain/straggler.yaml -o straggler", scratch)
    trace = TRACE.read_text(encoding="utf-8")
    (scratch / "one.json").write_text(trace, encoding="utf-8")
    (scratch / "two.json").write_text(trace.replace('"dur": 200.125', '"dur": 100.125'), encoding="utf-8")
    (scratch / "rounds").mkdir()
    (scratch / "rounds/round-4").symlink_to(root / "reports/blind/round-4")

    problems = []
    killed = 0
    commands = [command for command in COMMANDS if options.moments >= MANY or not command.slow]
    shares = sum(command.share for command in commands)
    done = 0
    for index, command in enumerate(commands):
        program = [sys.executable, "-c", command.python] if command.python else foretrace
        if command.python:
            (scratch / "made").mkdir(exist_ok=True)
        to_its_end(program, command.old, scratch)
        old = contents(scratch, command.results)
        log = scratch / "calls.log"
        log.unlink(missing_ok=True)
        begin = time.monotonic()
        to_its_end(program, command.new, scratch, {"LD_PRELOAD": str(shim), "FILE_CALLS_LOG": str(log)})
        seconds = time.monotonic() - begin
        new = contents(scratch, command.results)
        if any(old[name] == new[name] for name in command.results):
            problems.append(f"{command.name}: old and new results are the same, so nothing is tested")
        lines = log.read_text().splitlines()
        if not any(line.startswith("rename") for line in lines):
            problems.append(f"{command.name}: no rename seen, so nothing is tested")
        problems += [f"{command.name}: power failure: {text}"
                     for text in after_power_failures(lines, command.results, command.spoiled, scratch)]
        until = round(options.moments * sum(c.share for c in commands[:index + 1]) / shares)
        moments, done = until - done, until
        for _ in range(moments):
            was_killed, found = kill_once(program, shim, scratch, command, old, new, len(lines), seconds, rng)
            killed += was_killed
            problems += found
        stale = stale_temporaries(scratch)
        to_its_end(program, command.new, scratch)
        if contents(scratch, command.results) != new:
            problems.append(f"{command.name}: after the kills it writes something else")
        print(f"{command.name}: {moments} moments, {len(lines)} calls, {seconds:.2f} s, "
              f"{len(stale)} temporaries left")
        for file in stale:
            file.unlink()
        for name in command.results:
            (scratch / name).unlink()
    for problem in problems:
        print("LOST", problem)
    print(f"{done} moments over {len(commands)} commands, {killed} processes killed, {len(problems)} problems")
    shutil.rmtree(scratch)
    sys.exit(1 if problems or killed == 0 else 0)


if __name__ == "__main__":
    main()
