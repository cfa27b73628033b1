"""Copies between host and GPUs: directions, pinned and pageable, staging, pipelines, two GPUs."""

from draw import KIB, MIB, move_us
from families.common import in_turn, loop
from program import Program, each_device, op, region, repeat, size_text, sync, sync_device, \
    sync_devices


def directions(draw, gpus, number):
    p = Program("up_and_down", "Pinned memory: up, down, and both at once.")
    p.stream("up"), p.stream("down")
    bytes_ = draw.size(256 * KIB, 96 * MIB)
    for name in ("host_in", "host_out"):
        p.buffer(name, bytes_, "pinned")
    p.buffer("x", bytes_), p.buffer("y", bytes_)
    up = op("memcpy_async", stream="up", src="host_in", dst="x")
    down = op("memcpy_async", stream="down", src="y", dst="host_out")
    us = move_us(bytes_, "pinned")
    p.thread(*in_turn(p, loop("up", us, draw, up), loop("down", us, draw, down),
                      loop("both_ways", us, draw, up, down),
                      loop("one_then_the_other", 2 * us, draw, up, sync("up"), down, sync("down"))))
    return p


def pageable(draw, gpus, number):
    p = Program("pageable_copies", "Pageable memory: blocking and asynchronous copies of some sizes.")
    p.stream("s")
    regions = []
    for i in range(3):
        bytes_ = draw.size(32 * KIB, 24 * MIB)
        p.buffer(f"host{i}", bytes_, "pageable"), p.buffer(f"x{i}", bytes_)
        up = draw.chance(0.5)
        way = dict(src=f"host{i}", dst=f"x{i}") if up else dict(src=f"x{i}", dst=f"host{i}")
        copy = op("memcpy", **way) if draw.chance(0.5) else op("memcpy_async", stream="s", **way)
        name = f"{'upload' if up else 'download'}_{i}_{next(iter(copy))}"
        regions.append(loop(name, move_us(bytes_, "pageable"), draw, copy, low_us=600))
    p.thread(*in_turn(p, *regions))
    return p


def staged(draw, gpus, number):
    """By hand: the host copies into one of two pinned buffers while the other crosses."""
    p = Program("staged_by_hand", "Pageable data goes through two pinned buffers, part by part.")
    p.stream("s")
    p.event("free", 2, timing=False)
    part, parts = draw.size(256 * KIB, 4 * MIB), draw.whole(3, 10)
    p.buffer("data", part, "pageable"), p.buffer("stage", part, "pinned", count=2)
    p.buffer("x", part, count=2)
    fill = op("memcpy", src="data", dst="stage(i % 2)")
    up = op("memcpy_async", stream="s", src="stage(i % 2)", dst="x(i % 2)")
    p.thread(*in_turn(
        p, region("staged", repeat(parts, op("event_synchronize", event="free(i % 2)"), fill, up,
                                   op("event_record", stream="s", event="free(i % 2)"), index="i"),
                  sync("s")),
        region("directly", repeat(parts, op("memcpy_async", stream="s", src="data", dst="x(i % 2)"),
                                  index="i"), sync("s")),
        region("host_part_only", repeat(parts, fill, index="i"), per=parts),
        region("pinned_part_only", repeat(parts, up, index="i"), sync("s"))))
    return p


def pipeline(draw, gpus, number):
    """Up, compute, down, in chunks over several streams."""
    p = Program("chunks_up_compute_down", "Chunks go up, are computed, and come down, on some "
                "streams.")
    streams, chunks = draw.whole(2, 4), draw.whole(4, 12)
    bytes_ = draw.size(512 * KIB, 16 * MIB)
    p.stream("s", count=streams)
    p.buffer("host_in", bytes_, "pinned", count=streams)
    p.buffer("host_out", bytes_, "pinned", count=streams)
    p.buffer("x", bytes_, count=streams)
    m = f"(i % {streams})"
    kernels = draw.whole(1, 12)
    up = op("memcpy_async", stream="s" + m, src="host_in" + m, dst="x" + m)
    work = repeat(kernels, op("elementwise", stream="s" + m, src="x" + m, dst="x" + m))
    if draw.chance(0.4):
        work = op("spin", stream="s" + m, duration=draw.time(20, 400), blocks=draw.one(8, 40, 132))
    down = op("memcpy_async", stream="s" + m, src="x" + m, dst="host_out" + m)
    in_one = lambda one: {k: {kk: vv.replace(m, "(0)") if isinstance(vv, str) else vv
                              for kk, vv in v.items()} for k, v in one.items()}
    serial = [in_one(up), work if "repeat" in work else in_one(work), in_one(down)]
    if "repeat" in work:
        serial[1] = repeat(kernels, in_one(work["repeat"]["ops"][0]))
    p.thread(*in_turn(
        p, region("on_several_streams", repeat(chunks, up, work, down, index="i"), sync_device()),
        region("on_one_stream", repeat(chunks, *serial), sync_device()),
        region("copies_only", repeat(chunks, up, down, index="i"), sync_device())))
    return p


def small(draw, gpus, number):
    p = Program("small_copies", "Many small copies, one after the other.")
    p.stream("s")
    regions = []
    for i, memory in enumerate(draw.some(3, ["pinned", "pageable", "pinned", "pageable"])):
        bytes_ = draw.size(64, 256 * KIB)
        p.buffer(f"host{i}", bytes_, memory), p.buffer(f"x{i}", bytes_)
        ways = [dict(src=f"host{i}", dst=f"x{i}"), dict(src=f"x{i}", dst=f"host{i}")]
        copies = [op("memcpy_async", stream="s", **way) for way in draw.some(draw.whole(1, 2), ways)]
        ends = [sync("s")] if draw.chance(0.4) else []
        us = move_us(bytes_, memory) * len(copies) + 8 * len(ends)
        name = f"{memory}_{i}_{'each_waited_for' if ends else 'queued'}"
        regions.append(loop(name, us, draw, *copies, *ends, high_us=3000, per=True))
    p.thread(*in_turn(p, *regions))
    return p


def two_gpus(draw, gpus, number):
    """One process or two; each GPU's copies on streams of its own."""
    processes = draw.one(1, 2)
    p = Program("copies_of_two_gpus", f"Copies of two GPUs at once, from {processes} process"
                f"{'es' if processes > 1 else ''}.", 2, processes)
    each = "device" if processes == 1 else None
    memory = "pageable" if number % 4 == 3 else "pinned"
    bytes_ = draw.size(512 * KIB, 64 * MIB if memory == "pinned" else 8 * MIB)
    for name in ("up", "down"):
        p.stream(name, each=each)
        p.buffer("host_" + name, bytes_ * (p.devices if processes == 1 else 1), memory)
        p.buffer("x_" + name, bytes_, each=each)
    us = move_us(bytes_, memory)

    def copy(way, d=""):
        offset = f"d * {size_text(bytes_)}" if each and d == "(d)" else \
            size_text(bytes_) if d == "(1)" else None
        host, x = "host_" + way, f"x_{way}{d}"
        keys = dict(src=host, dst=x, src_offset=offset) if way == "up" else \
            dict(src=x, dst=host, dst_offset=offset)
        return op("memcpy_async", stream=way + d, **keys,
                  size=size_text(bytes_) if each else None)

    if each:
        all_ = lambda *ways: each_device(*(copy(way, "(d)") for way in ways))
        crossed = [copy("up", "(0)"), copy("down", "(1)")]
        regions = [loop("up_on_one_down_on_the_other", us, draw, *crossed, end=sync_devices())]
        end = sync_devices()
        bodies = {"up_on_both": [all_("up")], "down_on_both": [all_("down")],
                  "all_four": [all_("up", "down")]}
    else:
        end, regions = sync_device(), []
        bodies = {"up_on_both": [copy("up")], "down_on_both": [copy("down")],
                  "all_four": [copy("up"), copy("down")]}
    regions += [loop(name, us, draw, *body, end=end, low_us=600) for name, body in bodies.items()]
    p.thread(*in_turn(p, *regions))
    return p


def two_threads(draw, gpus, number):
    """A host thread per GPU, each with a pipeline of copies and kernels."""
    p = Program("pipelines_of_two_gpus", "Two host threads, each with a GPU, copy and compute.", 2)
    p.stream("s", each="device"), p.stream("t", each="device")
    p.event("ready", 2)
    bytes_, rounds = draw.size(1 * MIB, 32 * MIB), draw.whole(3, 10)
    both = draw.chance(0.6)
    for d in range(2):
        p.buffer(f"in{d}", bytes_, "pinned"), p.buffer(f"out{d}", bytes_, "pinned")
    p.buffer("x", bytes_, each="device"), p.buffer("y", bytes_, each="device")
    for d in range(2):
        up = op("memcpy_async", stream=f"s({d})", src=f"in{d}", dst=f"x({d})")
        work = op("elementwise", stream=f"s({d})", src=f"x({d})", dst=f"y({d})")
        hand = [op("event_record", stream=f"s({d})", event=f"ready({d})"),
                op("stream_wait_event", stream=f"t({d})", event=f"ready({d})")]
        down = op("memcpy_async", stream=f"t({d})", src=f"y({d})", dst=f"out{d}")
        back = [op("event_record", stream=f"t({d})", event=f"ready({d})"),
                op("stream_wait_event", stream=f"s({d})", event=f"ready({d})")]
        body = [up, work] + (hand + [down] + back if both else [])
        p.thread(op("host_barrier"), region(f"pipeline_{d}", repeat(rounds, *body),
                                            sync_device(d)),
                 op("host_barrier"), region(f"uploads_{d}", repeat(rounds, up), sync_device(d)),
                 name=f"gpu_{d}")
    return p


VARIANTS = {1: [directions, pageable, staged, pipeline, small, pageable, pipeline, staged],
            2: [two_gpus, two_threads, two_gpus, two_gpus, two_threads, two_gpus]}
