#!/usr/bin/env python3
"""Random machine files, machines by name and command lines: each ends soon, with an exit code that says what it was.

random_test.py FORETRACE SCRATCH [--seconds S] [--seed K] [--only KIND...]

A machine file is a shipped one with a few of its lines made worse; a command line has options as the command's
--help names them, with values that fit, values of other kinds, and files of every kind. A finding is a signal, an
end by a sanitizer or by foretrace's own checks (70), exit code 2 or 4 without a line that says why, a line that
is an exception's own, or more than 30 s of a processor. The seed is the day's, so that every day asks
something else; a finding's line repeats it, and its files stay in SCRATCH. Exit code 1 and a line for each."""

import argparse
import collections
import datetime
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time

SECONDS = 30           # of a processor, for one command
MEMORY = 6 << 30       # of an optimised program; a sanitized one reserves more than there is
LONGEST_ERROR = 1 << 20
OWN_WORDS = re.compile(r"json\.exception|std::|basic_string|vector::|map::at|bad_alloc|terminate called|_M_")
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:")
NUMBERS = ["0", "-0", "1", "-1", "2", "0.5", "1e9", "1e308", "-1e308", "1e-320", "9223372036854775807",
           "9223372036854775808", "18446744073709551616", "1e999", "nan", "inf", "-inf", "0x10", "1_000", "٣", "1" * 400]
UNITS = ["", "us", "ms", "s", " GB/s", " Gb/s", "GiB", "B", "%", " TFLOP/s", "x", "MHz", " W"]
WORDS = ["", "''", "~", "null", "true", "{}", "[]", "{a: 1}", "[1, 2]", "*a", "&a 1", "!!binary x", "|", ">", "'", '"', "#", "- 1",
         "\t", "\x07", "\u2028", "é" * 300, "x" * 70_000, "a\nb: c", "$x", "${HOME}", "`id`", "%s%n", ":", ": :"]
PARTS = ("gpus", "links", "hosts", "networks")  # of machines by name
SCENARIO = "scenarios/streams/small_kernels.yaml"
SCENARIOS = [SCENARIO, "scenarios/nccl/all_reduce.yaml", "scenarios/hangs/missing_rank.yaml", "scenarios/training/gpt2_ddp.yaml",
             "scenarios/examples/prefetch_two_streams.yaml"]


class Inputs:
    """What is made once: files that a command line may name."""

    def __init__(self, program, scratch, kinds):
        root = pathlib.Path(subprocess.run([program, "list", "data"], capture_output=True, text=True, check=True).stdout.strip())
        self.machines = {file.stem: file.read_text(encoding="utf-8") for file in sorted((root / "models/machines").glob("*.yaml"))}
        self.parts = [file.relative_to(root / "models/machines") for part in PARTS
                      for file in sorted((root / "models/machines" / part).glob("*.yaml"))]
        self.gpus = [file.stem for file in self.parts if file.parts[0] == "gpus"] or ["H100"]
        for name in ("scenarios", "models/machines", "reports/published", "reports/measured/calibrate_threads"):
            shutil.copytree(root / name, scratch / name)  # a command line may write over any of them
        if "command_line" not in kinds:
            return
        (scratch / "empty").write_text("")
        (scratch / "binary").write_bytes(bytes(range(256)) * 8)
        (scratch / "odd.json").write_text('{"schema_version": 1, "kind": "timeline", "a": [1e999, "\\ud800", null]}')
        (scratch / "deep.json").write_text("[" * 200_000 + "]" * 200_000)
        subprocess.run([program, "simulate", SCENARIO, "-o", "run"], cwd=scratch, capture_output=True, check=True)
        self.files = [one for one in SCENARIOS if (root / one).exists()] + [
            "run", "run/predicted.timeline.json", "reports/published/d2l_12_3.csv", "models/machines/h200-nvswitch-8.yaml",
            "reports/measured/calibrate_threads", "empty", "binary", "odd.json", "deep.json", "not/there", ".", "/dev/null",
            "/dev/zero", "/proc/self/mem", "-", "--", "out.csv", "out.html", "out.jsonl", "out", "run/trace.pftrace"]
        self.commands = self._commands(program)

    @staticmethod
    def _commands(program):
        text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^  ([a-z-]+)  ", text[text.index("Subcommands"):text.index("Environment")], re.M)
        return {name: re.findall(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?=[ ,=])", subprocess.run(
            [program, name, "--help"], capture_output=True, text=True, check=True).stdout)
            for name in names if name != "serve"}  # which ends by a signal: tests/cli/serve_test.py


def worse(rng, inputs, text):
    """A shipped file with one to four changes, most of them to a value."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.55:
            fresh = rng.choice(NUMBERS) + rng.choice(UNITS) if rng.random() < 0.7 else rng.choice(WORDS)
            lines[at] = re.sub(r"(?<=[:\s{])[^\s,{}:]+(?=[,}\s]|$)", lambda old: fresh if rng.random() < 0.4 else old[0], lines[at])
        elif kind < 0.65:
            lines.insert(at, rng.choice(lines))
        elif kind < 0.75:
            del lines[at:at + rng.randint(1, 5)]
        elif kind < 0.85:
            key = rng.choice(["node", "fabric", "faults", "scale", "without", "based_on", "parameters", "sources", "name"])
            lines.append(f"{key}: {rng.choice(WORDS + NUMBERS + sorted(inputs.machines))}")
        else:
            where = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:where] + rng.choice(WORDS)[:50] + lines[at][where:]
        if not lines:
            return ""
    return "\n".join(lines) + "\n"


def machine_by_name(rng, inputs):
    """8xB200+ib-ndr:64 and worse."""
    def one(good, bad):
        return rng.choice(good if rng.random() < 0.85 else bad)
    parts = [one(["8x", "4x", "1x", "2x"], ["0x", "-1x", "72x", "300x", "999999999999x", "x", ""]),
             one(inputs.gpus, ["Z9", "", "é", "b200"]),
             one(["", "", "/pcie4", "/pcie5", "/nvl72"], ["/nvswitch", "/", "/pcie4/pcie4", "/x"]),
             one(["", "+ib-ndr", "+tcp-100g"], ["+efa", "+", "+ib-ndr+ib-ndr", "+1e9"]),
             one(["", "", ":4", ":64"], [":0", ":-1", ":1e9", ":100001", ":", ":x", ":64:64"])]
    return "".join(parts) if rng.random() < 0.8 else "".join(rng.choice("8xHB+/:-.~ \x00"[:-1]) for _ in range(rng.randint(1, 30)))


def machine_with(rng, part, inputs):
    """A machine by name that reads the part."""
    name = {"gpus": f"8x{part.stem}", "links": f"8x{rng.choice(inputs.gpus)}/{part.stem}",
            "networks": f"8x{rng.choice(inputs.gpus)}+{part.stem}:4"}
    return name.get(part.parts[0], f"8x{rng.choice(inputs.gpus)}")


def command_line(rng, inputs):
    name = rng.choice(sorted(inputs.commands))
    words = [name] + [rng.choice(inputs.files) for _ in range(rng.choice([0, 1, 1, 1, 1, 2]))]
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        words.append(rng.choice(inputs.commands[name] or ["--x"]))
        kind = rng.random()
        if kind < 0.3:
            words.append(rng.choice(inputs.files))
        elif kind < 0.6:
            words.append(rng.choice(NUMBERS) + rng.choice(UNITS))
        elif kind < 0.75:
            words.append(rng.choice(["ranks=2", "n=1..1e9", "nvlink=0.5x", "nvlink=nan", "gpu=1e308x", "json", "csv", "h200-nvswitch-8", "=", "a=b=c"]))
        elif kind < 0.85:
            words.append(machine_by_name(rng, inputs))
        elif kind < 0.93:
            words.append(rng.choice(WORDS))
    return [word for word in words if "\0" not in word]


def limits(sanitized):
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * (8 if sanitized else 1),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    if not sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def finding_in(code, error):
    """What is wrong with an end; empty: nothing."""
    if code < 0:
        return f"signal {-code}"
    if SANITIZER.search(error):
        return "sanitizer"
    if code not in (0, 1, 2, 4):
        return f"exit code {code}"
    if code in (2, 4) and not error.strip():
        return f"exit code {code} without a line"
    if OWN_WORDS.search(error):
        return "an exception's own words"
    return f"{len(error)} bytes of errors" if len(error) > LONGEST_ERROR else ""


class Forks:
    """Runs commands as forks of one process (many_commands.cc), and starts another after some thousands."""

    MOST = 4000  # its own time counts, too

    def __init__(self, program, scratch, sanitized):
        self.words, self.sanitized, self.cwd = [str(pathlib.Path(program).with_name("many_commands"))], sanitized, scratch
        self.errors, self.left, self.process = scratch / f"errors-{os.getpid()}", 0, None

    def run(self, words, environment):
        """A command's exit code, and its standard error."""
        if self.left == 0:
            self.close()
            self.process = subprocess.Popen(self.words, cwd=self.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            preexec_fn=lambda: limits(self.sanitized))
            self.left = self.MOST
        self.left -= 1
        self.process.stdin.write(json.dumps({"words": words, "environment": environment, "errors": str(self.errors)}) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, self.errors.read_bytes()

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def start(program, scratch, words, environment, sanitized):
    done = subprocess.run([program, *words], cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=environment | os.environ, preexec_fn=lambda: limits(sanitized), check=False)
    return done.returncode, done.stderr


def run(program, scratch, seed, options, inputs, forks):
    """One command: its kind, its exit code, and what was found, or an empty text."""
    rng = random.Random(seed)
    kind = rng.choice(options.only)
    file, machines = scratch / f"machine-{os.getpid()}.yaml", scratch / f"machines-{os.getpid()}"
    environment = {}
    if kind == "machine_file":
        file.write_text(worse(rng, inputs, inputs.machines[rng.choice(sorted(inputs.machines))]), encoding="utf-8", errors="replace")
        words = ["simulate", SCENARIO, "-m", file.name]
    elif kind == "machine_part":
        if not machines.exists():
            shutil.copytree(scratch / "models/machines", machines)
        part = rng.choice(inputs.parts)
        file, whole = machines / part, (scratch / "models/machines" / part).read_text(encoding="utf-8")
        file.write_text(worse(rng, inputs, whole), encoding="utf-8", errors="replace")
        environment["FORETRACE_MACHINES"] = str(machines)
        words = ["simulate", SCENARIO, "-m", machine_with(rng, part, inputs)]
    elif kind == "machine_name":
        words = ["simulate", SCENARIO, "-m", machine_by_name(rng, inputs)]
    else:
        words = command_line(rng, inputs)
    code, errors = forks.run(words, environment) if forks else start(program, scratch, words, environment, options.sanitized)
    why = finding_in(code, errors.decode("utf-8", "replace"))
    if why and kind in ("machine_file", "machine_part"):
        shutil.copy(file, scratch / f"finding-{seed}.yaml")
    if kind == "machine_part":
        file.write_text(whole, encoding="utf-8")
    return kind, code, f"{why} (seed {seed}): {shlex.join(words)}" if why else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--most", type=int, default=10**9, metavar="N", help="commands at most")
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal(), help="default: the day's")
    parser.add_argument("--only", nargs="+", default=["machine_file", "machine_name", "machine_part", "command_line"], metavar="KIND")
    parser.add_argument("--sanitized", action="store_true", help="the program reserves memory as sanitizers do")
    parser.add_argument("--forks", action="store_true", help="of many_commands beside the program, which start sooner")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.environ["ASAN_OPTIONS"] = ("intercept_tls_get_addr=0:exitcode=99:allocator_may_return_null=1:malloc_context_size=2:"
                                  "quarantine_size_mb=4:thread_local_quarantine_size_kb=64")
    os.environ["UBSAN_OPTIONS"] = "exitcode=99"
    program, scratch = os.path.abspath(options.program), options.scratch.resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    inputs = Inputs(program, scratch, options.only)
    begin = time.monotonic()

    def work(worker):
        counts, findings = collections.Counter(), []
        forks = Forks(program, scratch, options.sanitized) if options.forks else None
        for number in range(worker, options.most, options.jobs):
            if time.monotonic() - begin > options.seconds:
                break
            kind, code, finding = run(program, scratch, options.seed * 10**9 + number, options, inputs, forks)
            counts[f"{kind} {code}"] += 1
            if finding:
                findings.append(finding)
                print("FOUND", finding[:2000], flush=True)
        if forks:
            forks.close()
        answers.put((counts, findings))

    answers = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(worker,)) for worker in range(options.jobs)]
    for one in workers:
        one.start()
    counts, findings = collections.Counter(), []
    for _ in workers:
        more, found = answers.get()
        counts += more
        findings += found
    seconds = time.monotonic() - begin
    total = sum(counts.values())
    print(f"{total} commands in {seconds:.0f} s, {total / seconds:.0f} in a second, seed {options.seed}: {len(findings)} findings; "
          + ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    sys.exit(1 if findings or not total else 0)


if __name__ == "__main__":
    main()
