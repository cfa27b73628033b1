#!/usr/bin/env python3
"""Measures training steps as PyTorch users write them: step time, peak memory per GPU, a trace of one step.

    python3 train.py FILE... -o RUNS/                   scenarios with a training_step
    python3 train.py -o RUNS/ [--only ID...]            configurations of the list
    python3 train.py --list

FILE is a scenario, which `foretrace` reads, or what `foretrace print FILE --format json` wrote. train.py starts a process for
each GPU itself, and a new one behind a step that ended its own. For each step there is RUNS/NAME/measured.timeline.json, which
`foretrace compare` and `report` hold against what `foretrace simulate FILE -o RUNS/NAME` predicts, and a line in
RUNS/results.jsonl, which `foretrace training-table` reads; RUNS/summary.json says what was not run, RUNS/traces.tar has the
whole traces of some configurations of the list. README.md says what the numbers mean.

Exit codes: 0 done; 1 a scenario's step failed, did not fit or was not run; 2 what cannot be run here; 4 a result cannot be
written."""

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from gpu import Nvml  # noqa: E402
from program import ProgramError, read_program  # noqa: E402
from result import write_whole  # noqa: E402
from shares import add_shares, shares_of  # noqa: E402
from step_result import program_of, step_regions, step_timeline  # noqa: E402
from steps.configurations import all_configurations  # noqa: E402
from steps.scenario import configuration_of  # noqa: E402
from workers import Parts, forget, run_batch  # noqa: E402

SHARES = {4: 0.55, 2: 0.55, 1: 0.75}  # of the time that is left, by GPUs, for a batch that others follow
OTHER_SHARE = 0.55
LARGEST_TRACE, LARGEST_TRACES = 4 << 20, 15 << 20
RESULT = "measured.timeline.json"
PLANS = ".plans.json"
LOCK = ".training"


def batches(chosen, gpus, environment_of=lambda one: {}):
    """Lists of configurations that share a process, in order. Apart from the rest are those that fill the memory,
    those that are compiled, and those of another environment."""
    kind = lambda one: (-one.ranks, sorted(environment_of(one).items()))
    shared = [one for one in chosen if one.ranks <= gpus and not one.fresh]
    kinds = sorted((kind(one) for one in shared))
    groups = [[one for one in shared if kind(one) == now] for index, now in enumerate(kinds) if now not in kinds[:index]]
    for family in dict.fromkeys(one.family for one in chosen if one.fresh):
        groups.append([one for one in chosen if one.fresh and one.family == family])
    return [group for group in groups if group]


def pack_traces(out):
    """One archive instead of the directory of traces, without those that are too large: returns these."""
    total, left = 0, []
    if not (out / ".traces").is_dir():
        return left
    with tarfile.open(out / "traces.tar", "a") as archive:
        for file in sorted((out / ".traces").glob("*.json.gz")):
            size = file.stat().st_size
            if size > LARGEST_TRACE or total + size > LARGEST_TRACES:
                left.append({"name": file.name, "bytes": size})
                continue
            total += size
            archive.add(file, arcname=file.name)
    shutil.rmtree(out / ".traces", ignore_errors=True)
    return left


def wanted(arguments):
    """The configurations of the list that were asked for."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="scenarios with a training_step, instead of the list")
    parser.add_argument("-o", "--out", metavar="RUNS/", help="directory of the results")
    parser.add_argument("--gpus", type=int, metavar="N", help="GPUs to use; default: all that there are")
    parser.add_argument("--seconds", type=float, default=1e6, metavar="S", help="stop cleanly after this time")
    parser.add_argument("--timeout", type=float, metavar="S",
                        help="nothing new for so long: a step hangs (75, compiled ones 180)")
    parser.add_argument("--no-trace", action="store_true", help="times and memory only")
    parser.add_argument("--foretrace", metavar="PROGRAM", help="the command that reads scenarios ($FORETRACE, or the PATH)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: for trials")
    parser.add_argument("--trial", action="store_true", help="all models at a tiny size: measures nothing")
    files = parser.add_argument_group("with FILE")
    files.add_argument("--repetitions", type=int, default=20, metavar="N", help="untraced passes of a step's `steps` (20)")
    files.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the scenario")
    files.add_argument("--force", action="store_true", help="measure anew what is there")
    of_list = parser.add_argument_group("of the list")
    of_list.add_argument("--list", action="store_true", help="print the configurations and stop")
    of_list.add_argument("--json", action="store_true", help="with --list: a line of JSON each, to predict them")
    of_list.add_argument("--only", nargs="+", metavar="ID", help="these configurations only")
    of_list.add_argument("--family", nargs="+", metavar="NAME", help="these families only")
    parsed = parser.parse_args(arguments)
    if not parsed.list and not parsed.out:
        parser.error("-o OUT is missing")
    if parsed.files and (parsed.list or parsed.only or parsed.family):
        parser.error("--list, --only and --family are of the list; FILE is run instead of it")
    if parsed.repetitions < 1 or (parsed.timeout is not None and not parsed.timeout > 0):
        parser.error("--repetitions and --timeout: more than 0")
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


def scenarios(arguments, gpus):
    """(configuration, program) of each FILE. Raises ProgramError for what cannot be run here."""
    found = []
    for file in arguments.files:
        program = read_program(file, arguments.foretrace, arguments.set)
        one = configuration_of(program)
        step_regions(program)
        target = pathlib.Path(arguments.out) / program.name / RESULT
        if program.name in [known.id for known, _ in found]:
            raise ProgramError(f"{file}: another file is of the name '{program.name}', too")
        if program.name.startswith("."):
            raise ProgramError(f"{file}: results of '{program.name}' would be hidden: a name begins with no dot")
        if target.exists() and not arguments.force:
            raise ProgramError(f"{target} is there: --force measures anew")
        if one.ranks > gpus:
            raise ProgramError(f"{file}: {one.ranks} processes with a GPU each, and there are {gpus}")
        found.append((one, program))
    return found


def own(out):
    """Keeps others from measuring into the directory as long as what it returns is there: both would write the same files."""
    while True:
        lock = (out / LOCK).open("a", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ProgramError(f"{out}: another train.py measures into it") from None
        except OSError:
            return lock  # a file system without locks
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(lock.fileno()), (out / LOCK).stat()):
                return lock
        lock.close()  # who had it has ended since, and removed it


class Run:
    """What one call of this program measures, and where it writes it."""

    def __init__(self, arguments, nvml, gpus):
        self.arguments, self.begin, self.gpu, self.gpus = arguments, time.time(), nvml.name(0), gpus
        self.out = pathlib.Path(arguments.out)
        found = scenarios(arguments, gpus)
        self.programs = {one.id: program for one, program in found}
        self.chosen = [one for one, _ in found] if arguments.files else choose(arguments, gpus, self.gpu)
        self.verdicts = {}
        self.options = ["--device", arguments.device] + ["--trial"] * arguments.trial + ["--no-trace"] * arguments.no_trace

    def prepare(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.own = own(self.out)
        if not self.programs:
            return
        forget(self.out, set(self.programs))
        plans = [{"configuration": dataclasses.asdict(one), "repetitions": self.arguments.repetitions,
                  "steps": max(steps for _, steps in step_regions(self.programs[one.id]).values())} for one in self.chosen]
        (self.out / PLANS).write_text(json.dumps(plans), encoding="utf-8")
        self.options += ["--plans", str(self.out / PLANS)]

    def environment_of(self, one):
        return self.programs[one.id].environment if one.id in self.programs else {}

    def measure(self):
        deadline, groups = self.begin + self.arguments.seconds, batches(self.chosen, self.gpus, self.environment_of)
        for index, batch in enumerate(groups):
            share = SHARES.get(batch[0].ranks, OTHER_SHARE) if index + 1 < len(groups) else 1.0
            run_batch(batch, self.out, time.time() + share * (deadline - time.time()), self.options,
                      self.environment_of(batch[0]), self.arguments.timeout)
            parts = Parts(self.out)
            for one in batch:
                if parts.has(one.id, "timing") or parts.has(one.id, "error", "timing"):
                    self.write(one, parts)

    def write(self, one, parts):
        """A line of results.jsonl and a timeline."""
        line = parts.result(one, self.gpu)
        steps, works = {}, []
        for rank in range(one.ranks):
            file = self.out / f".step.{one.id}.rank{rank}.json"
            if file.exists():
                steps[rank] = json.loads(file.read_text(encoding="utf-8"))
                works.append(steps[rank].pop("work", []))
                file.unlink()
        if 1 < one.ranks == len(works):
            add_shares(line, shares_of(works))
        with (self.out / "results.jsonl").open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")
        self.verdicts[one.id] = line["verdict"]
        directory, notes, program = self.out / one.id, {}, self.programs.get(one.id)
        directory.mkdir(exist_ok=True)
        if program is None:
            program, reason = program_of(one, directory, self.arguments.foretrace)
            notes = {"joins_no_prediction": reason} if reason else {}
        failed = [f"process {rank}: {values['error']['error']}" for rank, values in line["ranks"].items()
                  if line["verdict"] == "measured" and "error" in values]
        notes |= {"not_traced": "; ".join(failed)} if failed else {}
        if self.arguments.trial:
            program.document["scenario"]["program_hash"] += "-trial"
            notes["trial"] = "all models at a tiny size: these times measure nothing"
        write_whole(directory / RESULT, step_timeline(program, line, steps, parts.environment(), notes))
        print(f"{time.time() - self.begin:6.1f} s  {line['verdict']:13} {one.id}  "
              f"{line.get('step_time_ms_median', '')} ms", flush=True)

    def end(self):
        """The summary; returns the exit code."""
        left = pack_traces(self.out)
        for left_over in (self.out / PLANS, self.out / LOCK, *self.out.glob(".trace.rank*.json")):
            left_over.unlink(missing_ok=True)
        not_run = [one.id for one in self.chosen if one.id not in self.verdicts]
        summary = {"gpu": self.gpu, "gpus": self.gpus, "environment": Parts(self.out).environment() or None,
                   "seconds": round(time.time() - self.begin, 1), "measured": len(self.verdicts), "not_run": not_run,
                   "traces_left_out": left}
        (self.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        print(f"{len(self.verdicts)} configurations in {summary['seconds']} s, not run: {not_run}")
        bad = not_run or [one for one in self.verdicts.values() if one != "measured"]
        return int(bool(self.programs and bad))


def main():
    arguments = parse()
    if arguments.list:
        print_list(arguments)
        return 0
    nvml = Nvml()
    gpus = arguments.gpus or nvml.count()
    try:
        if not gpus:
            raise ProgramError("no GPU found; --gpus N says how many to use")
        run = Run(arguments, nvml, gpus)
        run.prepare()
        run.measure()
        return run.end()
    except ProgramError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
