"""A model on a device with its cache's arena and graphs, kept from file to file while the model stays."""

import time

import torch

from model import Model, Shape
from runner import Runner

WORKSPACE = 3 << 30  # bytes left to activations and graphs


def weights_bytes(config):
    s = Shape(config)
    attention = s.hidden * (2 * s.heads + 2 * s.kv_heads) * s.width
    inner = 3 * s.hidden * s.inner * max(1, s.experts) + s.hidden * s.experts
    return 2 * (s.layers * (attention + inner) + s.vocabulary * s.hidden * (1 if s.tied else 2))


def arena_tokens(config, engine, total_bytes):
    """So many tokens' keys and values fit beside weights and workspace into the engine's share of the memory."""
    left = total_bytes * engine["memory_ppm"] // 1000000 - weights_bytes(config) - WORKSPACE
    tokens = left // Shape(config).cache_bytes
    if tokens < engine["block"]:
        raise ValueError("the model leaves no memory to the cache")
    return tokens - tokens % engine["block"]


def environment():
    if not torch.cuda.is_available():
        return {"gpu": "CPU", "torch": torch.__version__}
    return {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda,
            "memory_bytes": torch.cuda.get_device_properties(0).total_memory}


def runner(config, engine, device, arena=None):
    begun = time.perf_counter()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        arena = arena or arena_tokens(config, engine, torch.cuda.get_device_properties(0).total_memory)
    arena = arena or 65536
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = Model(config, device, engine["max_length"], dtype)
    longest = engine.get("graph_length", engine["max_length"])
    found = Runner(model, arena, longest, engine["cuda_graphs"], engine["max_requests"])
    found.arena, found.loaded_s = arena, time.perf_counter() - begun
    return found


def warm(runner, engine):
    """Chunks of a few sizes, so that cuBLAS' and the allocator's first calls are behind; slots of the arena's begin."""
    for count in (engine["max_batched_tokens"], engine["max_batched_tokens"] // 2, 512, 100, 17):
        count = min(count, engine["max_length"] - 1, runner.arena)
        runner.run([([1] * count, 0, 0)])
        runner.run([([1], count - 1, 0), ([1] * max(2, count - 16), 0, 0)])
    for size in (1, 2, 8, 32):
        runner.run([([1], 16, 0)] * size)
