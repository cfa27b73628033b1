#!/usr/bin/env python3
"""What a GPU's clock does under load, and what the clock does to kernels: products by what they multiply, memory-bound
kernels and attention, each alone and in turn with a product.

    python3 hw/pytorch/clock.py -o clock.jsonl

A line for each case: of its parts the median time of a call and the share of the time, NVML's SM clock and power, all
in the last 0.6 s of 1.4 s. 80 seconds in all. Needs PyTorch and a GPU.
"""

import argparse
import json
import statistics
import sys
import threading
import time

from gpu import Nvml

IDLE_S, LOAD_S, WINDOW_S, PERIOD_S = 0.3, 1.4, 0.6, 0.010
AHEAD = 12  # periods that are queued
SHARES = (0.25, 0.5, 0.75)  # of the time that is not the product's


class Sampler(threading.Thread):
    """(seconds, MHz, W) every 10 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self.nvml, self.samples, self.ended = Nvml(), [], False

    def run(self):
        while not self.ended:
            self.samples.append((time.perf_counter(), self.nvml.sm_clock_mhz(0), self.nvml.power_w(0)))
            time.sleep(0.01)

    def medians(self, begin):
        self.ended = True
        self.join()
        inside = [s for s in self.samples if s[0] >= begin and s[1] is not None and s[2] is not None]
        return {"sm_mhz": statistics.median(s[1] for s in inside) if inside else None,
                "power_w": statistics.median(s[2] for s in inside) if inside else None}


def kernels(torch):
    """name: a call that launches it. Arrays are larger than the level-2 cache."""
    F, bf16 = torch.nn.functional, torch.bfloat16
    made = dict(device="cuda", dtype=bf16)
    normal, weight = torch.randn(8192, 8192, **made), torch.randn(8192, 8192, **made) * 0.02
    uniform, zeros = torch.rand(8192, 8192, **made), torch.zeros(8192, 8192, **made)
    out = torch.empty(8192, 8192, **made)
    narrow, wide = torch.randn(8192, 4096, **made), torch.randn(4096, 14336, **made) * 0.02
    large, other, sum_ = (torch.randn(256 << 20, **made) for _ in range(3))
    single = torch.randn(256 << 20, device="cuda")
    rows, gain = torch.randn(16384, 8192, **made), torch.ones(8192, **made)
    parameters = [torch.nn.Parameter(torch.randn(8192, 8192, device="cuda")) for _ in range(4)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    adamw = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def attention(width, heads=64, length=4096):
        q, k, v = (torch.randn(1, heads, length, width, requires_grad=True, **made) for _ in range(3))
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        gradient = torch.randn_like(result)
        held = (q.detach(), k.detach(), v.detach())
        return (lambda: F.scaled_dot_product_attention(*held, is_causal=True),
                lambda: torch.autograd.grad(result, (q, k, v), gradient, retain_graph=True))

    forward_128, backward_128 = attention(128)
    forward_64, backward_64 = attention(64)
    return {
        "product_zeros": lambda: torch.mm(zeros, zeros, out=out),
        "product_uniform": lambda: torch.mm(uniform, uniform, out=out),
        "product_normal": lambda: torch.mm(normal, normal, out=out),
        "product": lambda: torch.mm(normal, weight, out=out),
        "product_linear": lambda: torch.mm(narrow, wide),
        "add": lambda: torch.add(large, other, out=sum_),
        "cast": lambda: large.copy_(single),
        "rms_norm": lambda: F.rms_norm(rows, (8192,), gain),
        "gelu": lambda: F.gelu(rows),
        "adamw": adamw.step,
        "attention_forward": forward_128,
        "attention_backward": backward_128,
        "attention_forward_64": forward_64,
        "attention_backward_64": backward_64,
    }


def seconds_of(torch, call, count):
    """Of one call among so many, on the GPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count * 1e-3


def measure(torch, parts):
    """`parts`: [name, call, calls in a row], over and over again."""
    time.sleep(IDLE_S)
    sampler, issued = Sampler(), []
    sampler.start()
    begun = time.perf_counter()
    while time.perf_counter() - begun < LOAD_S:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(parts) + 1)]
        marks[0].record()
        for mark, (_, call, count) in zip(marks[1:], parts):
            for _ in range(count):
                call()
            mark.record()
        issued.append((time.perf_counter(), marks))
        if len(issued) > AHEAD:
            issued[-AHEAD][1][-1].synchronize()
    torch.cuda.synchronize()
    ended = time.perf_counter()
    clocks = sampler.medians(ended - WINDOW_S)
    last = [marks for when, marks in issued if when >= ended - WINDOW_S - AHEAD * PERIOD_S]
    times = [statistics.median(m[i].elapsed_time(m[i + 1]) for m in last) for i in range(len(parts))]
    return {"parts": {name: {"us": round(ms * 1e3 / count, 3), "calls": count, "share": round(ms / sum(times), 4)}
                      for (name, _, count), ms in zip(parts, times)}, **clocks}


def cases(single):
    """Lists of parts; `single`: seconds of a call of each."""
    row = lambda name, seconds: (name, max(1, round(seconds / single[name])))
    for name in single:
        yield [row(name, PERIOD_S)]
    for name in [n for n in single if not n.startswith("product")] + ["product_zeros"]:
        for share in SHARES:
            yield [row("product", PERIOD_S * (1 - share)), row(name, PERIOD_S * share)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit("clock.py: there is no GPU")
    calls = kernels(torch)
    single = {}
    for name, call in calls.items():
        seconds_of(torch, call, 3)
        single[name] = seconds_of(torch, call, 10)
    with open(arguments.output, "w") as out:
        for parts in cases(single):
            line = measure(torch, [(name, calls[name], count) for name, count in parts])
            line |= {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__}
            print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()
