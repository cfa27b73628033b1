"""How fast a host runs Python and PyTorch's dispatcher: the same small loops on every host, so that another host's times scale."""

import time


def _best(call, repeats=7):
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - begin)
    return best


def _python():
    total, names = 0, {"a": 1, "b": 2}
    for i in range(20000):
        total += names["a"] + (i & 3)
        names["b"] = total
    return total


def reference_loop():
    """{python_ns: 20,000 turns of dictionary work, dispatch_ns: 2,000 additions of PyTorch's on tensors of 4 elements on the CPU,
    module_ns: 500 calls of a small module with autograd, forward and backward}; best of seven."""
    import torch
    a = torch.ones(4)
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

    def dispatch():
        for _ in range(2000):
            torch.add(a, a)

    def module():
        for _ in range(500):
            layer(a).sum().backward()

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {"python_ns": _best(_python), "dispatch_ns": _best(dispatch), "module_ns": _best(module)}
    finally:
        torch.set_num_threads(threads)
