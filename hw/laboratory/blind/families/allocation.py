"""Memory that a program allocates while it runs: on the device, in a stream's order, pinned."""

from draw import KIB, MIB, move_us
from families.common import Product, elementwise_us, in_turn
from program import Program, op, region, repeat, sync, sync_device


def in_the_stream(draw, gpus, number):
    """Temporary buffers of each step come from the stream's pool."""
    p = Program("temporary_buffers", "Each step allocates and frees its temporary buffers.", gpus,
                gpus)
    p.stream("s")
    sizes = [draw.size(4 * KIB, 128 * MIB) for _ in range(draw.whole(2, 4))]
    p.buffer("x", max(sizes))
    for i, bytes_ in enumerate(sizes):
        p.buffer(f"t{i}", bytes_), p.buffer(f"kept{i}", bytes_)
    take = lambda i: op("malloc_async", stream="s", buffer=f"t{i}")
    give = lambda i: op("free_async", stream="s", buffer=f"t{i}")
    use = lambda name: op("elementwise", stream="s", src="x", dst=name)
    every = range(len(sizes))
    us = sum(elementwise_us(b) + 4 for b in sizes)
    times = draw.times(us, 500, 5000, 60)
    together = [take(i) for i in every] + [use(f"t{i}") for i in every] + [give(i) for i in every]
    each = [one for i in every for one in (take(i), use(f"t{i}"), give(i))]
    p.thread(*in_turn(
        p, region("one_by_one", repeat(times, *each), sync("s"), per=times),
        region("all_then_freed", repeat(times, *together), sync("s"), per=times),
        region("kept", repeat(times, *(use(f"kept{i}") for i in every)), sync("s"), per=times),
        region("waited_for", repeat(min(times, 10), *each, sync("s")))))
    return p


def device(draw, gpus, number):
    """cudaMalloc and cudaFree around kernels."""
    p = Program("malloc_in_the_loop", "Buffers are allocated and freed around the kernels that use "
                "them.", gpus, gpus)
    p.stream("s")
    small, large = draw.size(1 * KIB, 1 * MIB), draw.size(2 * MIB, 512 * MIB)
    p.buffer("x", large), p.buffer("small", small), p.buffer("large", large)
    rounds = draw.whole(2, 10)
    body = lambda name: [op("malloc", buffer=name), op("elementwise", stream="s", src="x",
                                                       dst=name), op("free", buffer=name)]
    p.thread(*in_turn(
        p, region("small_ones", repeat(rounds * 2, *body("small")), sync("s"), per=rounds * 2),
        region("large_ones", repeat(rounds, *body("large")), sync("s"), per=rounds),
        region("both", repeat(rounds, *body("small"), *body("large")), sync("s"))))
    return p


def pinned(draw, gpus, number):
    """Pinned memory allocated or registered for a transfer, against pageable memory."""
    p = Program("pinned_for_a_transfer", "Host memory is pinned for one transfer, and freed again.",
                gpus, gpus)
    p.stream("s")
    bytes_, rounds = draw.size(256 * KIB, 32 * MIB), draw.whole(1, 3)
    p.buffer("x", bytes_), p.buffer("stage", bytes_, "pinned"), p.buffer("data", bytes_, "pageable")
    p.buffer("set", bytes_, "pageable")
    up = lambda src: op("memcpy_async", stream="s", src=src, dst="x")
    p.thread(*in_turn(
        p, region("allocated", repeat(rounds, op("host_alloc", buffer="stage"), up("stage"),
                                      sync("s"), op("host_free", buffer="stage")), per=rounds),
        region("pageable", repeat(rounds * 2, up("data")), sync("s"), per=rounds * 2),
        region("registered", op("host_register", buffer="set"), up("set"), sync("s")),
        region("registered_before", repeat(rounds * 4, up("set")), sync("s"), per=rounds * 4)))
    return p


VARIANTS = [in_the_stream, device, in_the_stream, pinned]
