"""Two fixed loops: how fast this host runs Python and PyTorch's dispatcher. `capture` and `measure` run them between a program's steps and write both
down, so that one host's time can be scaled to another's: what slows the steps down (a neighbour, a lower clock) slows the loops beside them too."""

import statistics
import time

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
    """A function that makes 2,000 rounds of four small operations on the CPU."""
    import torch
    a, b = torch.ones(4, 4), torch.ones(4, 4)

    def loop():
        with torch.no_grad():
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
