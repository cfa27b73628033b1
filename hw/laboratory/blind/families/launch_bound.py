"""Many tiny kernels: what the host's calls cost decides."""

from draw import KIB
from families.common import Product, in_turn, loop
from program import Program, op, region, repeat, sync, sync_device


def tiny(draw, p, stream, i):
    """One small operation on buffers of its own."""
    kind = draw.one("elementwise", "elementwise", "add", "reduction", "memset", "spin", "product",
                    "copy")
    bytes_ = draw.size(256, 512 * KIB)
    x, y = f"x{i}", f"y{i}"
    if kind not in ("spin", "product"):
        p.buffer(x, bytes_), p.buffer(y, bytes_)
    if kind == "spin":
        return op("spin", stream=stream, duration=draw.time(1, 8), blocks=draw.one(1, 4, 32))
    if kind == "product":
        side = draw.width(32, 300)
        return Product(p, f"p{i}", side, side, draw.width(32, 300), draw.dtype()).on(stream)
    if kind == "memset":
        return op("memset_async", stream=stream, dst=x)
    if kind == "copy":
        return op("memcpy_async", stream=stream, src=x, dst=y)
    if kind == "reduction":
        return op("reduction", stream=stream, src=x, dst=y, type="float32")
    sources = [x, y] if kind == "add" else [x]
    return op("elementwise", stream=stream, srcs=sources, dst=y,
              type=draw.one("float32", "bfloat16"))


def mixture(draw, gpus, number):
    p = Program("tiny_kernels", "A mixture of tiny kernels on one stream.")
    p.stream("s")
    ops = [tiny(draw, p, "s", i) for i in range(draw.whole(3, 9))]
    think = op("host_compute", duration=draw.time(2, 40))
    us = 4.0 * len(ops)
    p.thread(*in_turn(
        p, loop("queued", us, draw, *ops, end=sync("s"), high_us=3000, per=True),
        loop("each_round_waited_for", us + 10, draw, *ops, sync("s"), high_us=3000, per=True),
        loop("host_works_between", us + 20, draw, *ops, think, end=sync("s"), high_us=3000),
        loop("read_after_each_round", us + 25, draw, *ops,
             op("read_scalar", stream="s", src=p.buffer("value", 4 * KIB)), high_us=3000)))
    return p


def one_kind(draw, gpus, number):
    p = Program("one_tiny_kernel", "The same small operation over and over, alone in each region.")
    p.stream("s")
    regions = []
    for i in range(4):
        one = tiny(draw, p, "s", i)
        regions.append(loop(f"{next(iter(one))}_{i}", 4, draw, one, end=sync("s"), high_us=2500,
                            per=True))
    p.thread(*in_turn(p, *regions))
    return p


def spread(draw, gpus, number):
    """The same tiny kernels on one stream, on several, and from two host threads."""
    count = draw.whole(2, 8)
    p = Program("tiny_kernels_spread", f"Tiny kernels on one stream, on {count}, from two threads.")
    p.stream("s", count=count)
    p.stream("main_stream"), p.stream("other_stream")
    bytes_, times = draw.size(1 * KIB, 256 * KIB), draw.whole(60, 300)
    p.buffer("x", bytes_, count=count), p.buffer("a", bytes_), p.buffer("b", bytes_)
    one = lambda stream, x: op("elementwise", stream=stream, src=x, dst=x)
    p.thread(
        region("one_stream", repeat(times, one("main_stream", "a")), sync_device(), per=times),
        region("several_streams",
               repeat(times, one(f"s(i % {count})", f"x(i % {count})"), index="i"), sync_device(),
               per=times),
        op("host_barrier", name="both"),
        region("beside_another_thread", repeat(times, one("main_stream", "a")),
               sync("main_stream"), per=times))
    p.thread(op("host_barrier", name="both"),
             region("the_other_thread", repeat(times, one("other_stream", "b")),
                    sync("other_stream"), per=times), name="other")
    return p


def optimizer(draw, gpus, number):
    """An optimizer that goes through many small parameters, one kernel or three each."""
    p = Program("optimizer", "An optimizer steps through many small parameters.")
    count = draw.whole(20, 120)
    bytes_ = draw.size(512, 256 * KIB)
    for name in ("w", "g", "m"):
        p.buffer(name, bytes_, count=count)
    add = lambda a, b, to: op("elementwise", srcs=[f"{a}(i)", f"{b}(i)"], dst=f"{to}(i)")
    one = [add("w", "g", "w")]
    three = [add("m", "g", "m"), op("elementwise", src="m(i)", dst="m(i)"), add("w", "m", "w")]
    clear = [op("memset_async", stream="default", dst="g(i)")]
    p.thread(*in_turn(
        p, region("plain", repeat(count, *one, index="i"), sync_device(), per=count),
        region("with_momentum", repeat(count, *three, index="i"), sync_device()),
        region("with_clearing", repeat(count, *three, *clear, index="i"), sync_device()),
        region("calls_alone", repeat(count, *one, index="i"), per=count), sync_device()))
    return p


VARIANTS = [mixture, spread, one_kind, optimizer, mixture, one_kind, spread]
