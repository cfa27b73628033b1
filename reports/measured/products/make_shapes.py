#!/usr/bin/env python3
"""Writes shapes.csv beside itself: the products that foretrace-hw products measures.

Deterministic: a fixed seed, random() only. Families, and why they are there:

  training   what training multiplies: the widths of published models (Meta's, OpenAI's, BigScience's,
             Mistral's, Qwen's and DeepSeek's own configuration files), their tensor-parallel slices,
             forward (TN), by the input (NN) and by the weight (NT; some summed into float32)
  random     log-uniform m, n, k of 1 to 16384, any transposes: what nobody thought of; a third are
             multiples of 64 or 128, a third of 8, a third are anything (odd ones lose 16-byte loads)
  skinny     few tiles and a long k, or one side of a few rows: where the library splits k
  ladder     around whole waves of tiles on 132 SMs: where one more tile costs a whole wave
  attention  scores and values of unfused attention, and experts, as strided batches

Column-major, as cuBLAS has it: a row-major y = x W^T of a linear layer is m = out, n = tokens,
k = in, transa T, transb N. The part is chosen by a hash of the product: a third is held out (judge).
"""
import hashlib
import math
import pathlib
import random

COLUMNS = "m,n,k,type,c_type,transa,transb,batch,beta,family,part,note"
LARGEST_FLOP = {"bfloat16": 16e12, "float16": 16e12, "tf32": 6e12, "float32": 1e12, "float64": 1e12}
BYTES = {"bfloat16": 2, "float16": 2, "tf32": 4, "float32": 4, "float64": 8}

# name: (hidden, q+k+v, attention's output in, ffn, gated, vocabulary)
DENSE = {
    "llama3_8b": (4096, 6144, 4096, 14336, True, 128256),
    "llama3_70b": (8192, 10240, 8192, 28672, True, 128256),
    "llama2_7b": (4096, 12288, 4096, 11008, True, 32000),
    "llama2_13b": (5120, 15360, 5120, 13824, True, 32000),
    "gpt3_125m": (768, 2304, 768, 3072, False, 50257),
    "gpt3_350m": (1024, 3072, 1024, 4096, False, 50304),
    "gpt3_760m": (1536, 4608, 1536, 6144, False, 50257),
    "gpt3_1.3b": (2048, 6144, 2048, 8192, False, 50304),
    "gpt3_2.7b": (2560, 7680, 2560, 10240, False, 51200),
    "gpt3_6.7b": (4096, 12288, 4096, 16384, False, 51200),
    "gpt3_13b": (5120, 15360, 5120, 20480, False, 51200),
    "gpt3_175b": (12288, 36864, 12288, 49152, False, 51200),
    "bloom_176b": (14336, 43008, 14336, 57344, False, 250880),
    "deepseek_v3_dense": (7168, 24576, 16384, 18432, True, 129280),
}
# name: (hidden, q+k+v, attention's output in, an expert's ffn, vocabulary)
EXPERTS = {
    "qwen3_30b_a3b": (2048, 5120, 4096, 768, 151936),
    "mixtral_8x7b": (4096, 6144, 4096, 14336, 32000),
    "mixtral_8x22b": (6144, 8192, 6144, 16384, 32768),
    "deepseek_v3": (7168, 24576, 16384, 2048, 129280),
}


class Random(random.Random):
    """Only random() is the same in every Python."""

    def pick(self, values):
        return values[int(self.random() * len(values))]

    def log(self, low, high):
        return round(math.exp(math.log(low) + self.random() * (math.log(high) - math.log(low))))


def layers():
    """(name, in, out, sliced) of every weight: sliced 'out' by columns, 'in' by rows."""
    for name, (hidden, qkv, attention, ffn, gated, vocabulary) in DENSE.items():
        yield f"{name} qkv", hidden, qkv, "out"
        yield f"{name} attention out", attention, hidden, "in"
        yield f"{name} ffn up", hidden, ffn, "out"
        if gated:
            yield f"{name} ffn gate and up", hidden, 2 * ffn, "out"
        yield f"{name} ffn down", ffn, hidden, "in"
        yield f"{name} head", hidden, vocabulary, "out"
    for name, (hidden, qkv, attention, ffn, vocabulary) in EXPERTS.items():
        yield f"{name} qkv", hidden, qkv, "out"
        yield f"{name} attention out", attention, hidden, "in"
        yield f"{name} expert up", hidden, ffn, "expert"
        yield f"{name} expert gate and up", hidden, 2 * ffn, "expert"
        yield f"{name} expert down", ffn, hidden, "expert"
        yield f"{name} head", hidden, vocabulary, "out"


def training(rnd, dtype, order):
    """One product of a weight; `order` walks through weights and directions evenly."""
    weights = list(layers())
    name, inner, outer, sliced = weights[order % len(weights)]
    tokens = rnd.pick([512, 1024, 2048, 4096, 4096, 8192, 16384])
    if sliced == "expert":  # what a router sends to one expert is any number
        tokens = rnd.pick([32, 128, 512, 1024, rnd.log(16, 4096), rnd.log(16, 4096)])
    slices = rnd.pick([1, 1, 2, 4, 8])
    if sliced == "out" and outer % slices == 0:
        outer //= slices
    elif sliced == "in" and inner % slices == 0:
        inner //= slices
    else:
        slices = 1
    note = name if slices == 1 else f"{name} 1/{slices}"
    direction = (order // len(weights) + order) % 3
    if direction == 0:
        return (outer, tokens, inner, dtype, dtype, "T", "N", 1, 0, note + " forward")
    if direction == 1:
        return (inner, tokens, outer, dtype, dtype, "N", "N", 1, 0, note + " by the input")
    beta, c_type = rnd.pick([(0, dtype), (0, dtype), (1, dtype), (1, "float32")])
    if BYTES[dtype] != 2:
        c_type = dtype
    return (inner, outer, tokens, dtype, c_type, "N", "T", 1, beta, note + " by the weight")


def anything(rnd, dtype, order):
    step = [1, 8, 64][order % 3] if order % 6 < 3 else [1, 8, 128][order % 3]
    m, n, k = (max(step, round(rnd.log(1 if step == 1 else step, 16384) / step) * step) for _ in "mnk")
    transa, transb = rnd.pick([("N", "N"), ("N", "N"), ("T", "N"), ("N", "T"), ("T", "T")])
    return (m, n, k, dtype, dtype, transa, transb, 1, 0, f"multiples of {step}")


def skinny(rnd, dtype, order):
    transa, transb = rnd.pick([("N", "N"), ("T", "N"), ("N", "T")])
    if order % 2 == 0:
        m, n = rnd.pick([64, 128, 256, 512, 200]), rnd.pick([64, 128, 256, 384, 100])
        return (m, n, rnd.pick([2048, 4096, 8192, 16384, 32768, 65536]), dtype, dtype, transa, transb,
                1, 0, "few tiles and a long k")
    few = rnd.pick([1, 2, 4, 8, 16, 32, 48, 64])
    many, k = rnd.pick([2048, 4096, 8192, 14336]), rnd.pick([2048, 4096, 8192, 11008])
    m, n = (many, few) if rnd.random() < 0.75 else (few, many)
    return (m, n, k, dtype, dtype, transa, transb, 1, 0, "few columns or rows")


def ladder(rnd, dtype, order):
    """m is 11 or 33 tiles of 128, so that 12 or 4 columns of tiles are one wave of 132."""
    transa, transb = [("N", "N"), ("T", "N"), ("N", "T")][order % 3]
    k = [4096, 1024, 8192][order // 3 % 3]
    rows, columns = [(11, 12), (33, 4)][order // 2 % 2]
    waves = 1 + order // 4 % 4
    step = [-128, 0, 8, 128, -64, 64, 256][order % 7]
    return (128 * rows, 128 * columns * waves + step, k, dtype, dtype, transa, transb, 1, 0,
            f"{waves} waves of 128x128 tiles and {step} columns")


def attention(rnd, dtype, order):
    if order % 6 == 5:
        experts, tokens = rnd.pick([4, 8, 16, 64]), rnd.pick([64, 128, 256, 512])
        hidden, ffn = rnd.pick([(2048, 768), (4096, 1792), (7168, 2048)])
        return (ffn, tokens, hidden, dtype, dtype, "T", "N", experts, 0, "experts forward")
    length, width = rnd.pick([128, 512, 1024, 1000, 2048, 4096]), rnd.pick([64, 80, 128])
    heads = rnd.pick([8, 12, 16, 32, 40, 64, 96, 128])
    while length * length * heads * BYTES[dtype] > 2**31:
        heads //= 2
    kind = order % 6
    if kind in (0, 3):
        return (length, length, width, dtype, dtype, "T", "N", heads, 0, "scores")
    if kind in (1, 4):
        return (width, length, length, dtype, dtype, "N", "N", heads, 0, "values")
    return (width, length, length, dtype, dtype, "N", "T", heads, 0, "by the values")


PLAN = [  # (type, family, how many)
    ("bfloat16", training, 264), ("bfloat16", anything, 150), ("bfloat16", skinny, 50),
    ("bfloat16", ladder, 56),
    ("bfloat16", attention, 40), ("float16", attention, 10), ("float32", attention, 5),
    ("tf32", attention, 5),
    ("float16", training, 50), ("float16", anything, 50), ("float16", skinny, 10),
    ("float16", ladder, 10),
    ("float32", training, 16), ("float32", anything, 26), ("float32", skinny, 9),
    ("float32", ladder, 9),
    ("tf32", training, 16), ("tf32", anything, 16), ("tf32", skinny, 4), ("tf32", ladder, 4),
    ("float64", anything, 26), ("float64", skinny, 7), ("float64", ladder, 7),
]


def shapes(plan, seed, is_left_out):
    """The lines of a table: of each (type, family, how many) in `plan`, those that are new and not left out."""
    rnd = Random(seed)
    known = set()
    for dtype, family, wanted in plan:
        order = made = 0
        while made < wanted:
            *shape, note = family(rnd, dtype, order)
            order += 1
            key = ",".join(map(str, shape))
            if is_left_out(family, shape) or key in known:
                continue
            known.add(key)
            made += 1
            held_out = hashlib.sha256(key.encode()).digest()[0] % 3 == 0
            name = {"anything": "random"}.get(family.__name__, family.__name__)
            yield f"{key},{name},{'judge' if held_out else 'fit'},{note}"


def write(name, lines):
    lines = list(lines)
    pathlib.Path(__file__).with_name(name).write_text("\n".join([COLUMNS, *lines]) + "\n")
    print(f"{len(lines)} products")


def is_too_large(family, shape):
    m, n, k, dtype, _, _, _, batch, _ = shape
    return 2 * m * n * k * batch > LARGEST_FLOP[dtype]


if __name__ == "__main__":
    write("shapes.csv", shapes(PLAN, 11, is_too_large))
