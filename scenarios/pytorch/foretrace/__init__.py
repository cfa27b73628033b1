"""Predicts what a PyTorch program does in time on GPUs that are not here.

    with foretrace.capture("out/step", world_size=8):   # no GPU: writes down what the program asks of one
        ...
        with foretrace.region("step"):
            ...
    foretrace.simulate("out/step", machine="h100-nvswitch-8")   # an answer with .rows, .table(), .plot(), and HTML in notebooks

`measure` in place of `capture` runs the same program on real GPUs. Nothing of PyTorch is imported before one of them is called."""

from .measuring import measure
from .answer import ForetraceError
from .program import compare, nccl_tests, plan, simulate, sweep
from .session import capture, region

__all__ = ["ForetraceError", "capture", "compare", "measure", "nccl_tests", "plan", "region", "simulate", "sweep"]
