"""python3 -m foretrace capture|measure|host"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import messages
from .environment import CaptureError, emulated_environment, fake_environment, rank_environment
from .reference_loop import write_host
from .report import print_summary
from .scenario import write_scenario
from .whole import own

GPUS_PER_NODE = 8
MOST_RANKS = 100_000  # of a scenario
MOST_MEMORY = 1 << 50  # of a GPU


def parse(words=None):
    parser = argparse.ArgumentParser(prog="python3 -m foretrace", description="Captures a PyTorch program without a GPU, or measures it on real ones, or their host.")
    commands = parser.add_subparsers(dest="command", required=True)
    c = commands.add_parser("capture", help="write down what a step asks of the GPU, on an emulated one",
                            description="Runs SCRIPT as you, with all that it may do to your files and the network: nothing keeps it in.")
    c.add_argument("-o", "--output", required=True, metavar="OUT", help="folder of step.yaml and the records")
    c.add_argument("--world-size", type=int, default=1, metavar="N", help="ranks of the program (1)")
    c.add_argument("--ranks", default="0", metavar="R,...", help="ranks to capture, where they differ (0)")
    c.add_argument("--gpus-per-node", type=int, default=GPUS_PER_NODE, metavar="N", help=f"GPUs that a process sees ({GPUS_PER_NODE})")
    c.add_argument("--gpu", default="h100", metavar="GPU", help="the GPU to emulate (h100)")
    c.add_argument("--memory", type=int, metavar="BYTES", help="memory of each GPU, if not its own")
    c.add_argument("--step", type=int, metavar="N", help="the step to record, from 1 (3, and once more 7 where the program goes on: its allocator has settled)")
    c.add_argument("--more", type=int, default=2, metavar="N", help="steps after it for the host's time, if the program has them (2)")
    c.add_argument("--values", choices=("auto", "rule", "compute"), default="auto",
                   help="what the host reads of the GPU: by rules, or computed on the CPU in a run before, which takes a few times as long (auto: where rules will not do)")
    c.add_argument("--depth", choices=("auto", "emulated", "fake"), default="auto",
                   help="emulated: the emulated GPU, exact; fake: fake tensors, any PyTorch and system, one rank (auto: emulated where it can run)")
    c.add_argument("--region", metavar="NAME", help="the foretrace.region that is a step (the first one that begins)")
    c.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module, as of python3 -m")
    c.add_argument("script", metavar="-- SCRIPT")
    c.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS")
    m = commands.add_parser("measure", help="run the same script on this machine's GPUs")
    m.add_argument("-o", "--output", required=True, metavar="OUT")
    m.add_argument("--gpus", type=int, default=1, metavar="N", help="processes, each with a GPU (1)")
    m.add_argument("--step", type=int, default=3, metavar="N", help="untimed steps before (3)")
    m.add_argument("--steps", type=int, default=20, metavar="N", help="timed steps, which follow each other by fours (20)")
    m.add_argument("--region", metavar="NAME")
    m.add_argument("--timeout", type=float, default=600, metavar="S")
    m.add_argument("-m", "--module", action="store_true")
    m.add_argument("script", metavar="-- SCRIPT")
    m.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS")
    h = commands.add_parser("host", help="write down how fast this host is, for simulate --host")
    h.add_argument("-o", "--output", default="host.yaml", metavar="FILE", help="(host.yaml)")
    arguments = parser.parse_args(words)
    if arguments.command == "capture":
        if not 1 <= arguments.world_size <= MOST_RANKS or arguments.gpus_per_node < 1:
            parser.error(f"--world-size: between 1 and {MOST_RANKS}; --gpus-per-node: at least 1")
        if (arguments.step is not None and arguments.step < 1) or arguments.more < 0 or (arguments.memory is not None and arguments.memory < 1):
            parser.error("--step and --memory: at least 1; --more: at least 0")
        try:
            arguments.ranks = sorted({int(r) for r in arguments.ranks.split(",")})
        except ValueError:
            parser.error(f"--ranks {arguments.ranks}: numbers, by commas")
        if arguments.ranks[0] < 0 or arguments.ranks[-1] >= arguments.world_size:
            parser.error(f"--ranks: between 0 and {arguments.world_size - 1}")
        if arguments.memory is not None and arguments.memory > MOST_MEMORY:
            parser.error(f"--memory: at most {MOST_MEMORY} bytes")
    if arguments.command == "measure":
        if not 1 <= arguments.gpus <= MOST_RANKS or arguments.step < 0 or arguments.steps < 1:
            parser.error(f"--gpus: between 1 and {MOST_RANKS}; --step: at least 0; --steps: at least 1")
        if not 0 < arguments.timeout < float("inf"):
            parser.error("--timeout: seconds, more than 0")
    return arguments


def why_compute(numbers, returncode):
    """Why a run by rules alone will not do; None where it will. A program that failed may have read a count of 0 (nonzero) that is none."""
    if os.path.exists(numbers):
        with open(numbers) as file:
            unsure = json.load(file)["unsure"]
        return f"the host read {unsure} values that no rule knows" if unsure else None
    return "the program failed" if returncode == 1 else None


def capture_rank(arguments, environment, rank):
    """Runs the script as this rank; what `write_record` returned."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = os.path.join(folder, "numbers.json")
        options = {"out": arguments.output, "step": arguments.step, "more": arguments.more, "region": arguments.region, "module": arguments.module,
                   "numbers": numbers, "parent": os.getpid()}
        environment = rank_environment(environment, rank, arguments.world_size, arguments.gpus_per_node)
        package = str(pathlib.Path(__file__).resolve().parents[1])
        environment["PYTHONPATH"] = os.pathsep.join([package] + ([environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []))

        def run(**more):
            command = [sys.executable, "-m", "foretrace.child", json.dumps({**options, **more}), arguments.script, *arguments.arguments]
            return subprocess.run(command, env=environment, check=False)

        def compute():
            options["reads"] = os.path.join(folder, "reads")
            done = run(values="compute")
            if not os.path.exists(options["reads"]):
                raise CaptureError(f"rank {rank}: the run that computes values ended with {done.returncode}; what it printed stands above")

        if arguments.values == "compute":
            compute()
        done = run()
        if arguments.values == "auto":
            why = why_compute(numbers, done.returncode)
            if why:
                print(f"foretrace: {why}: what the host reads is computed in a run before", file=sys.stderr, flush=True)
                compute()
                pathlib.Path(numbers).unlink(missing_ok=True)
                done = run()
        if done.returncode == messages.MISSING:
            raise messages.MissingMessage(f"rank {rank} receives Python objects of a rank that is not captured: --ranks with all that send")
        if not os.path.exists(numbers):
            raise CaptureError(f"rank {rank}: the program ended with {done.returncode} and no record; what it printed stands above")
        with open(numbers) as file:
            return json.load(file)


def environment_of(arguments):
    """The environment of a capture, and its depth."""
    if arguments.depth != "fake":
        try:
            return emulated_environment(arguments.gpu, min(arguments.world_size, arguments.gpus_per_node), arguments.memory), "emulated"
        except CaptureError as error:
            if arguments.depth == "emulated":
                raise
            print(f"foretrace: {error}; captured with fake tensors", file=sys.stderr, flush=True)
    return fake_environment(arguments.gpu), "fake"


def capture_fake_tensors(arguments, environment):
    """What `write_record` returns, of a script whose GPU tensors are fake ones."""
    if arguments.world_size > 1:
        raise CaptureError("fake tensors capture one rank of one: several need PyTorch's CUDA build on Linux and the emulated GPU")
    with tempfile.TemporaryDirectory() as folder:
        numbers = os.path.join(folder, "numbers.json")
        options = {"out": arguments.output, "step": arguments.step, "region": arguments.region, "module": arguments.module, "numbers": numbers,
                   "parent": os.getpid()}
        package = str(pathlib.Path(__file__).resolve().parents[1])
        environment["PYTHONPATH"] = os.pathsep.join([package] + ([environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []))
        done = subprocess.run([sys.executable, "-m", "foretrace.fake_recorder", json.dumps(options), arguments.script, *arguments.arguments], env=environment, check=False)
        if not os.path.exists(numbers):
            raise CaptureError(f"the program ended with {done.returncode} and no record; what it printed stands above")
        with open(numbers) as file:
            return json.load(file)


def capture_ranks(arguments, environment):
    """{rank: what `write_record` returned}. A rank that waits for objects of another one is captured again when that has sent more."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(environment, **{messages.FOLDER: folder})
        numbers, waiting = {}, list(arguments.ranks)
        while waiting:
            sent, still = len(os.listdir(folder)), []
            for rank in waiting:
                try:
                    numbers[rank] = capture_rank(arguments, environment, rank)
                except messages.MissingMessage as error:
                    still.append(rank)
                    missing = error
            if still and len(os.listdir(folder)) == sent:
                raise missing
            waiting = still
        return numbers


def main(words=None):
    arguments = parse(words)
    try:
        if arguments.command == "host":
            return write_host(arguments.output)
        if not arguments.module and not os.path.exists(arguments.script):
            raise CaptureError(f"there is no script {arguments.script}")
        arguments.output = os.path.abspath(arguments.output)  # the program may go elsewhere
        with own(arguments.output) as is_ours:
            if not is_ours:
                raise CaptureError(f"{arguments.output}: another capture or measurement writes into it")
            return run(arguments)
    except CaptureError as error:
        print(f"foretrace: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"foretrace: {error}", file=sys.stderr)
        return 4


def run(arguments):
    """`capture` or `measure` into a folder that is nobody else's meanwhile."""
    if arguments.command == "measure":
        from .measuring import measure_script
        return measure_script(arguments)
    environment, depth = environment_of(arguments)
    numbers = capture_ranks(arguments, environment) if depth == "emulated" else {0: capture_fake_tensors(arguments, environment)}
    name = pathlib.Path(os.path.abspath(arguments.output)).name
    print_summary(write_scenario(arguments.output, name, arguments.world_size, arguments.ranks), numbers)
    return 0
