"""Runs a user's script in this process and records it: started by `python3 -m foretrace capture` on the emulated GPU.

    python3 -m foretrace.child '{"out": ..., "step": 3, ...}' SCRIPT ARGS..."""

import json
import os
import runpy
import sys


def run_script(script, arguments, module):
    """As `python3 SCRIPT ARGS` or `python3 -m MODULE ARGS` would."""
    sys.argv = [script, *arguments]
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")


def main():
    options, script, arguments = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
    from .environment import CaptureError
    from .recorder import CaptureDone
    from .session import Capture
    session = Capture(options["out"], options["step"], options["more"], options["region"], stop=True, command=[script, *arguments])
    session.start()
    try:
        run_script(script, arguments, options["module"])
    except CaptureDone:
        pass
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    try:
        numbers = session.finish()
    except CaptureError as error:
        print(f"foretrace: {error}", file=sys.stderr)
        os._exit(2)
    with open(options["numbers"], "w") as file:
        json.dump(numbers, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of PyTorch and NCCL need no farewell


if __name__ == "__main__":
    main()
