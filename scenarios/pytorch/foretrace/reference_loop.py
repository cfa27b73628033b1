"""Two fixed loops: how fast this host runs Python and PyTorch's dispatcher. `capture` and `measure` run them between a program's steps and write both
down, so that one host's time can be scaled to another's: what slows the steps down (a neighbour, a lower clock) slows the loops beside them too."""

import json
import statistics
import sys
import time

from .whole import write_whole

ROUNDS = 5


def python_loop():
    """A function that makes 200,000 rounds of arithmetic, calls and dictionary accesses."""
    def add(a, b):
        return a + b

    def loop():
        table, total = {}, 0
        for i in range(200_000):
            table[i & 255] = add(i, total & 1023)
            total += table[i & 255]
        return total
    return loop


def torch_loop():
    """A function that makes 2,000 rounds of four small operations on the CPU, whatever device or mode the program has set."""
    import torch
    a, b = torch.ones(4, 4, device="cpu"), torch.ones(4, 4, device="cpu")

    def loop():
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for _ in range(2_000):
                c = a + b
                c.mul_(0.5)
                c = c.view(16)
                c.t()
    return loop


LOOPS = {"python_loop_ns": python_loop, "torch_loop_ns": torch_loop}


def one_round():
    """{name: ns of this thread on its processor} of each loop, once: 25 and 20 ms on a quick host."""
    times = {}
    for name, make in LOOPS.items():
        loop = make()
        begin = time.thread_time_ns()
        loop()
        times[name] = time.thread_time_ns() - begin
    return times


def host_speed(rounds=None):
    """The median of `rounds` that were made beside what is to be scaled; without any the fastest of five now."""
    choose = statistics.median if rounds else min
    rounds = rounds or [one_round() for _ in range(ROUNDS)]
    return {name: round(choose(one[name] for one in rounds)) for name in LOOPS}


def host_text(speed):
    """What `foretrace simulate --host` reads."""
    import platform
    lines = ["foretrace_host: 1", f"name: {json.dumps(platform.node() or 'a host')}", *(f"{name[:-3]}: {ns / 1e6:.3f}ms" for name, ns in speed.items())]
    return "\n".join(lines) + "\n"


def write_host(path):
    """The command `host`."""
    try:
        text = host_text(host_speed())
    except ImportError:
        print("foretrace: host needs PyTorch, whose calls it times", file=sys.stderr)
        return 2
    try:
        write_whole(path, text)
    except OSError as error:
        print(f"foretrace: {path}: {error.strerror}", file=sys.stderr)
        return 2
    print(text + f"written to {path}: foretrace simulate STEP.yaml --host {path}")
    return 0
