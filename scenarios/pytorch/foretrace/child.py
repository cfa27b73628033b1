"""Runs a user's script in this process and records it: started by `python3 -m foretrace capture` on the emulated GPU.

    python3 -m foretrace.child '{"out": ..., "step": 3, ...}' SCRIPT ARGS..."""

import ctypes
import json
import os
import pickle
import runpy
import signal
import sys

SET_DEATH_SIGNAL = 1  # of prctl


def end_with(parent):
    """Ends this process when `parent` ends, however that does: else it would go on unseen, on GPUs that others measure and in files of the next start. Does
    nothing where there is no Linux."""
    if not parent or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def run_script(script, arguments, module):
    """As `python3 SCRIPT ARGS` or `python3 -m MODULE ARGS` would."""
    sys.argv = [script, *arguments]
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")


def compute_values(options, script, arguments):
    """The run before: what the host reads, computed beside the program; kept in `options["reads"]`."""
    from .recorder import CaptureDone
    from .session import Capture
    from .shadows import Shadows
    session = Capture(options["out"], options["step"], options["more"], options["region"], stop=True)
    session.start(profile=False)
    emulation = session.recorder.emulation
    emulation.keep_reads()
    shadows = Shadows(emulation.loaded)
    try:
        with shadows:
            run_script(script, arguments, options["module"])
    except CaptureDone:
        pass
    with open(options["reads"], "wb") as file:
        pickle.dump({"kept": emulation.kept_reads(), "guessed": shadows.guessed}, file)
    sys.stdout.flush()
    os._exit(0)


def hand_over(options, numbers):
    """Hands over what was recorded and ends the process."""
    with open(options["numbers"], "w") as file:
        json.dump(numbers, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of PyTorch and NCCL need no farewell


def main():
    options, script, arguments = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
    end_with(options.get("parent"))
    from .environment import CaptureError
    from .messages import MISSING, MissingMessage
    from .recorder import CaptureDone
    from .session import Capture
    if options.get("values") == "compute":
        return compute_values(options, script, arguments)
    session = Capture(options["out"], options["step"], options["more"], options["region"], stop=True, command=[script, *arguments])
    session.start()
    if options.get("reads"):
        with open(options["reads"], "rb") as file:
            reads = pickle.load(file)
        session.recorder.emulation.give_reads(reads["kept"])
        session.guessed = reads["guessed"]
    try:
        run_script(script, arguments, options["module"])
    except CaptureDone:
        pass
    except MissingMessage as error:
        print(f"foretrace: {error}", file=sys.stderr, flush=True)
        os._exit(MISSING)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    try:
        numbers = session.finish()
    except CaptureError as error:
        print(f"foretrace: {error}", file=sys.stderr)
        os._exit(2)
    hand_over(options, numbers)


if __name__ == "__main__":
    main()
