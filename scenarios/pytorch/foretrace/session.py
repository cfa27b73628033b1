"""`foretrace.capture` and `foretrace.region`: in the user's own script, or around it by `python3 -m foretrace`."""

import contextlib
import os
import pathlib
import sys

from .environment import CaptureError, emulated_environment, script_digest

FIRST, AGAIN = 3, 4  # the step that is recorded, from 1, and how much later once more if the program goes on
_active = None  # Steps of the capture or measurement that runs


@contextlib.contextmanager
def region(name):
    """A part of the program with a name: `step` is what is recorded. Does nothing where nothing is captured or measured."""
    if _active is None:
        yield
        return
    with _active.in_region(name):
        yield


class Capture:
    """One rank's recording of this process."""

    def __init__(self, out, step=None, more=2, region_name=None, stop=False, command=None):
        from .recorder import Recorder
        from .steps import Steps
        from .world import World
        self.out = pathlib.Path(out).absolute()  # wherever the program goes
        self.command = command or list(sys.argv)
        self.digest = script_digest(self.command, int(os.environ.get("WORLD_SIZE", "1")))
        self.recorder = Recorder((step or FIRST) - 1, more, stop, 0 if step else AGAIN)
        self.steps = Steps(self.recorder, region_name)
        self.world = World(self.recorder.emulation)
        self.guessed = None  # by `shadows`, in a run before
        self.rank = int(os.environ.get("RANK", "0"))

    def start(self, profile=True):
        global _active
        from .initial_values import InitialValues
        from .messages import Messages
        self.recorder.profiles = profile
        self.initial = InitialValues(lambda: not self.recorder.instances)
        self.initial.install()
        self.world.install()
        Messages(self.rank).install()
        self.steps.watch_optimizers()
        _active = self.steps

    def finish(self):
        global _active
        _active = None
        self.steps.close()
        self.initial.remove()
        from .finish import write_record
        self.out.mkdir(parents=True, exist_ok=True)
        return write_record(self.out / f"rank{self.rank}.calls.jsonl.gz", self.recorder, self.world, self.command, self.digest, self.steps.region or "step", self.guessed, self.initial.left)


@contextlib.contextmanager
def capture(out, world_size=1, gpu="h100", step=None, memory=None):
    """Records the program inside on an emulated GPU: OUT/step.yaml and OUT/rank0.calls.jsonl.gz. Starts the process again where the emulated GPU is
    not loaded yet, which must be before PyTorch is."""
    from .emulation import Emulation
    if _active is not None:  # python3 -m foretrace captures already
        yield
        return
    if not Emulation.present():
        _start_again(gpu, world_size, memory)
    from .report import print_summary
    from .scenario import write_scenario
    out = pathlib.Path(out).absolute()
    session = Capture(out, step)
    session.start()
    try:
        yield
    finally:
        if sys.exc_info()[0] is None:
            numbers = session.finish()
            print_summary(write_scenario(out, pathlib.Path(out).name, world_size, [session.rank]), {session.rank: numbers})


def _start_again(gpu, world_size, memory):
    command = getattr(sys, "orig_argv", None)
    if not command or hasattr(sys, "ps1") or "ipykernel" in sys.modules or os.environ.get("FORETRACE_AGAIN"):
        raise CaptureError("the emulated GPU must be there before PyTorch is imported: run the script by `python3 -m foretrace capture -o OUT -- SCRIPT`")
    environment = emulated_environment(gpu, min(world_size, 8), memory)
    environment.update(FORETRACE_AGAIN="1", RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world_size), LOCAL_WORLD_SIZE=str(min(world_size, 8)))
    environment.setdefault("MASTER_ADDR", "127.0.0.1")
    environment.setdefault("MASTER_PORT", "29500")
    print("foretrace: starting the script again on an emulated GPU", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *command[1:]], environment)
