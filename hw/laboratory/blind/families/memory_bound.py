"""Kernels that move memory: sizes below, around and above the L2 cache, types, chains."""

from draw import KIB, MIB, move_us
from families.common import elementwise_us, in_turn, loop
from program import Program, op, region, repeat, sync_device


def kernels(draw, gpus, number):
    p = Program("memory_kernels", "Elementwise kernels, reductions and copies of several sizes.")
    regions = []
    for i in range(draw.whole(4, 5)):
        bytes_ = draw.size(2 * MIB, 400 * MIB) if draw.chance(0.6) else \
            draw.size(8 * MIB, 90 * MIB)
        p.buffer(f"x{i}", bytes_), p.buffer(f"y{i}", bytes_)
        kind = draw.one("fill", "unary", "add", "in_place", "reduce", "set", "copy")
        dtype = draw.one("float32", "float32", "bfloat16", "float16")
        x, y = f"x{i}", f"y{i}"
        sources = {"fill": [], "unary": [x], "add": [x, y], "in_place": [y]}
        if kind in sources:
            one = op("elementwise", srcs=sources[kind] or None, dst=y, type=dtype)
        elif kind == "reduce":
            one = op("reduction", src=x, dst=y, type=dtype)
        elif kind == "set":
            one = op("memset_async", stream="default", dst=x)
        else:
            one = op("memcpy_async", stream="default", src=x, dst=y)
        us = elementwise_us(bytes_, {"fill": 0, "set": 0, "reduce": 0, "add": 2}.get(kind, 1))
        regions.append(loop(f"{kind}_{i}", us, draw, one, low_us=400, high_us=4000))
    p.thread(*in_turn(p, *regions))
    return p


def chain(draw, gpus, number):
    """What one kernel writes the next one reads: from the cache, when it fits."""
    p = Program("chains_of_kernels", "Each kernel reads what the one before it wrote.")
    regions = []
    for i, bytes_ in enumerate(draw.some(4, [4, 9, 16, 21, 30, 48, 64, 100, 160])):
        bytes_ = bytes_ * MIB + draw.one(0, 0, 4, 300 * KIB)
        for name in "abc":
            p.buffer(f"{name}{i}", bytes_)
        ops = [op("elementwise", src=f"a{i}", dst=f"b{i}"),
               op("elementwise", srcs=[f"a{i}", f"b{i}"], dst=f"c{i}"),
               op("elementwise", src=f"c{i}", dst=f"a{i}")][:draw.whole(2, 3)]
        if draw.chance(0.4):
            ops.append(op("reduction", src=f"b{i}", dst=f"c{i}", type="float32"))
        regions.append(loop(f"chain_{i}", len(ops) * elementwise_us(bytes_, 1.5), draw, *ops,
                            high_us=4000, per=True))
    p.thread(*in_turn(p, *regions))
    return p


def normalise(draw, gpus, number):
    """As a layer norm or a softmax written as single kernels: reduce, combine, write."""
    p = Program("normalisation", "Reductions and elementwise kernels over activations, as a norm.")
    p.stream("s"), p.stream("t")
    bytes_, depth = draw.size(1 * MIB, 128 * MIB), draw.whole(2, 6)
    dtype = draw.one("float32", "bfloat16")
    for name in ("x", "y", "z", "other"):
        p.buffer(name, bytes_)
    p.buffer("sum", 4 * KIB), p.buffer("sum_of_other", 4 * KIB)
    norm = [op("reduction", stream="s", src="x", dst="sum", type=dtype),
            op("elementwise", stream="s", src="x", dst="y", type=dtype),
            op("elementwise", stream="s", srcs=["x", "y"], dst="z", type=dtype)]
    beside = op("reduction", stream="t", src="other", dst="sum_of_other", type=dtype)
    us = 3 * elementwise_us(bytes_)
    p.thread(*in_turn(
        p, loop("norms", us, draw, *norm, high_us=4000),
        loop("norm_and_residual", us * depth, draw, repeat(
            depth, *norm, op("elementwise", stream="s", srcs=["x", "z"], dst="x", type=dtype)),
            high_us=4000),
        loop("beside_a_reduction", us, draw, *norm, beside, high_us=4000),
        loop("reductions_alone", us / 3, draw, beside, high_us=4000)))
    return p


VARIANTS = [kernels, chain, normalise, kernels, chain, kernels, normalise]
