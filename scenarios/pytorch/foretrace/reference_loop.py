"""Two fixed loops: how fast this host runs Python and PyTorch's dispatcher. `capture` and `measure` write both down, so that one host's time can be
scaled to another's."""

import time

ROUNDS = 5


def python_loop():
    """ns for 200,000 rounds of arithmetic, calls and dictionary accesses; the fastest of five."""
    def add(a, b):
        return a + b

    def loop():
        table, total = {}, 0
        for i in range(200_000):
            table[i & 255] = add(i, total & 1023)
            total += table[i & 255]
        return total
    return _fastest(loop)


def torch_loop():
    """ns for 2,000 rounds of four small operations on the CPU; the fastest of five."""
    import torch
    a, b = torch.ones(4, 4), torch.ones(4, 4)

    def loop():
        with torch.no_grad():
            for _ in range(2_000):
                c = a + b
                c.mul_(0.5)
                c = c.view(16)
                c.t()
    return _fastest(loop)


def _fastest(loop):
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        loop()
        times.append(time.perf_counter_ns() - begin)
    return min(times)


def host_speed():
    return {"python_loop_ns": python_loop(), "torch_loop_ns": torch_loop()}
