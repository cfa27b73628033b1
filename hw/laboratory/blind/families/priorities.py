"""Streams of different priority: small kernels beside products, memory kernels and fixed times."""

from draw import KIB, MIB
from families.common import Product, elementwise_us, in_turn
from program import Program, op, region, repeat, sync, sync_device


def busy(draw, p, kind, stream):
    """What the GPU is busy with, and about how long one takes."""
    if kind == "product":
        dtype = draw.one("bfloat16", "bfloat16", "float16", "float32")
        most = 3000 if dtype == "float32" else 6000
        x = Product(p, "large", *(draw.width(1500, most) for _ in range(3)), dtype)
        return x.on(stream), x.us
    if kind == "memory":
        bytes_ = draw.size(64 * MIB, 512 * MIB)
        p.buffer("wide", bytes_)
        return op("elementwise", stream=stream, src="wide", dst="wide"), elementwise_us(bytes_)
    waves, each = draw.whole(2, 10), draw.whole(15, 150)
    return (op("spin", stream=stream, duration=f"{each}us", blocks=132 * waves), waves * each)


def urgent(draw, p, stream):
    kind = draw.one("elementwise", "product", "spin", "copy")
    if kind == "elementwise":
        p.buffer("small", draw.size(16 * KIB, 4 * MIB))
        return op("elementwise", stream=stream, src="small", dst="small")
    if kind == "product":
        return Product(p, "little", draw.width(64, 500), draw.width(64, 500), draw.width(64, 800),
                       draw.dtype()).on(stream)
    if kind == "copy":
        bytes_ = draw.size(4 * KIB, 1 * MIB)
        p.buffer("result", bytes_), p.buffer("host", bytes_, "pinned")
        return op("memcpy_async", stream=stream, src="result", dst="host")
    return op("spin", stream=stream, duration=draw.time(5, 40), blocks=draw.whole(1, 40))


def overtaking(draw, gpus, number):
    kind = ("product", "memory", "product", "fixed")[number % 4]
    p = Program("urgent_beside_busy", "Small urgent operations beside a busy stream, with and "
                "without priority.")
    p.stream("busy", priority=0), p.stream("high", priority=-5), p.stream("same", priority=0)
    work, us = busy(draw, p, kind, "busy")
    times, count = max(2, draw.times(us, 1500, 6000, 60)), draw.whole(4, 40)
    one = urgent(draw, p, "high")
    plain = {k: {**v, "stream": "same"} for k, v in one.items()}
    p.thread(*in_turn(
        p, region("until_the_urgent_ended", repeat(times, work), repeat(count, one), sync("high")),
        sync_device(),
        region("until_the_equal_ended", repeat(times, work), repeat(count, plain), sync("same")),
        sync_device(),
        region("all_of_it", repeat(times, work), repeat(count, one), sync_device()),
        region("busy_alone", repeat(times, work), sync_device()),
        region("urgent_one_by_one", repeat(times, work), repeat(min(count, 6), one, sync("high"))),
        sync_device()))
    return p


VARIANTS = [overtaking]
