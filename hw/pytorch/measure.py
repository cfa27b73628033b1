"""Runs a scenario in PyTorch by the harness's rules: untraced repetitions first, a traced pass after.

    python3 measure.py FILE -o RUNS/                             one process
    torchrun --nproc-per-node N measure.py FILE... -o RUNS/      N processes

FILE is a scenario, which `foretrace` reads, or what `foretrace print FILE --format json` wrote. The result is
RUNS/NAME/measured.timeline.json. Exit codes: 0 done; 1 an operation failed, or the run hung; 2 what cannot be
run here; 4 a result cannot be written."""

import argparse
import os
import pathlib
import subprocess
import sys
import threading
import time

from program import ProgramError, read_program

FAILED_TOGETHER_S = 8
ENVIRONMENT = []  # of the programs that ran, which all have the same
START = dict(os.environ)


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="RUNS/")
    parser.add_argument("--repetitions", type=int, default=20, metavar="N", help="untraced passes (20)")
    parser.add_argument("--no-trace", action="store_true", help="region times only")
    parser.add_argument("--timeout", type=float, default=30, metavar="S", help="no call returns for so long: it hangs (30)")
    parser.add_argument("--force", action="store_true", help="measure anew what is there")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the scenario")
    parser.add_argument("--foretrace", metavar="PROGRAM", help="the command that reads scenarios ($FORETRACE, or the PATH)")
    arguments = parser.parse_args(words)
    if arguments.repetitions < 1 or not arguments.timeout > 0:
        parser.error("--repetitions and --timeout: more than 0")
    return arguments


class Watchdog:
    """Ends the process when nothing moves: says where every host thread is."""

    def __init__(self, seconds, run, say):
        self.seconds, self.run, self.say = seconds, run, say
        self.armed = False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        before, since = None, time.monotonic()
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            now = (self.run.passes, *(thread.at for thread in self.run.threads))
            if now != before or not self.armed:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > self.seconds:
                try:
                    self.say([f"process {self.run.process}, thread {one.name}: {one.place()}" for one in self.run.threads])
                finally:
                    os._exit(1)


def start_again(file, arguments):
    """The file in a process of its own, with the environment of this one's start: CUDA has read what is set now."""
    words = [sys.executable, __file__, file, "-o", arguments.output, "--repetitions", str(arguments.repetitions),
             "--timeout", str(arguments.timeout)]
    words += ["--no-trace"] * arguments.no_trace + ["--force"] * arguments.force
    words += [word for one in arguments.set for word in ("--set", one)]
    words += ["--foretrace", arguments.foretrace] if arguments.foretrace else []
    code = subprocess.run(words, env=START).returncode
    return code if code >= 0 else 1


def measure(file, arguments, ranks):
    program = read_program(file, arguments.foretrace, arguments.set)
    target = pathlib.Path(arguments.output) / program.name / "measured.timeline.json"
    if program.nodes > 1:
        raise ProgramError(f"{file}: PyTorch's executor runs on one node; this program is for {program.nodes}")
    if program.processes != ranks.size:
        raise ProgramError(f"{file}: {program.processes} processes, and {ranks.size} were started: "
                           f"torchrun --nproc-per-node {program.processes}")
    if target.exists() and not arguments.force:
        raise ProgramError(f"{target} is there: --force measures anew")
    if ENVIRONMENT and ENVIRONMENT != [program.environment]:
        if ranks.size > 1:
            raise ProgramError(f"{file}: another environment than the program before it: it needs a start of its own")
        return start_again(file, arguments)
    os.environ.update(program.environment)  # CUDA and NCCL read it when they are first called
    ENVIRONMENT[:] = [program.environment]
    try:
        from process_run import run_program  # with PyTorch: after what can be refused without it
    except ImportError as error:
        raise ProgramError(f"PyTorch cannot be used here: {error}") from error
    return run_program(program, arguments, ranks, target, Watchdog)


def main():
    arguments = parse()
    from meeting import NotMet, Ranks
    try:
        ranks, worst = Ranks(), 0
    except (NotMet, ProgramError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, NotMet) else 2
    except ImportError as error:
        print(f"error: PyTorch cannot be used here: {error}", file=sys.stderr)
        return 2
    for file in arguments.files:
        try:
            worst = max(worst, measure(file, arguments, ranks))
        except ProgramError as error:
            if ranks.rank == 0:
                print(f"error: {error}", file=sys.stderr)
            worst = max(worst, 2)
        except NotMet as error:  # nothing more can be measured together
            print(f"error: {file}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"error: {error}", file=sys.stderr)
            worst = 4
    try:
        ranks.leave(FAILED_TOGETHER_S)
    except NotMet as error:
        print(f"error: {error}", file=sys.stderr)
        return worst or 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
