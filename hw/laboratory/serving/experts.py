#!/usr/bin/env python3
"""A layer of experts as hw/serving's engine calls it (PyTorch's grouped_mm), timed by its kernels on a GPU.

    python3 hw/laboratory/serving/experts.py -o experts.json

Graphs of three layers with weights of their own, several shapes, 1 to 4096 tokens: microseconds of a layer, of its two grouped
products, and of all else. README.md has what an H200 said."""

import argparse
import json
import pathlib
import sys
import tempfile
import types

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "serving" / "engine"))

from model import Model  # noqa: E402

SHAPES = {  # experts, hidden, width of an expert, experts of a token
    "qwen3-30b-a3b": (128, 2048, 768, 8), "mixtral-8x7b": (8, 4096, 14336, 2), "gpt-oss-20b": (32, 2880, 2880, 4),
    "256 of 512": (256, 2048, 512, 8), "olmoe": (64, 2048, 1024, 8)}
LAYERS, REPLAYS = 3, 4


def layer_of(experts, hidden, width, device):
    def matrix(*sizes):
        return torch.empty(sizes, device=device, dtype=torch.bfloat16).normal_(0, 0.02)

    return {"router": matrix(experts, hidden), "up": matrix(experts, 2 * width, hidden).transpose(1, 2),
            "down": matrix(experts, hidden, width).transpose(1, 2)}


def kernels_of(graph):
    """Names and microseconds of the graph's operations, in order, of each replay."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(REPLAYS):
            graph.replay()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    events = sorted((e for e in events if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")), key=lambda e: e["ts"])
    return [(e["name"], e["dur"]) for e in events]


def timed(name, tokens, device):
    experts, hidden, width, chosen = SHAPES[name]
    engine = types.SimpleNamespace(shape=types.SimpleNamespace(experts=experts, inner=width, chosen=chosen))
    layers = [layer_of(experts, hidden, width, device) for _ in range(LAYERS)]
    rows = [torch.randn(tokens, hidden, device=device, dtype=torch.bfloat16) for _ in range(LAYERS)]

    def forward():
        for layer, h in zip(layers, rows):
            Model.experts(engine, h, layer)

    forward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward()
    graph.replay()
    found = kernels_of(graph)
    many = LAYERS * REPLAYS
    products = [us for kernel, us in found if "cutlass" in kernel and "prepare_grouped" not in kernel]
    return {"shape": name, "tokens": tokens, "layer_us": sum(us for _, us in found) / many,
            "products_us": sum(products) / many, "operations": len(found) / many}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("experts.py: no GPU here")
    device = torch.device("cuda")
    rows = [timed(name, 2**power, device) for name in SHAPES for power in range(13)]
    pathlib.Path(given.output).write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
