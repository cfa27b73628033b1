"""Several streams with events, host functions, host threads, tasks; on one GPU and on two."""

from draw import KIB, MIB, move_us
from families.common import Product, elementwise_us, in_turn, loop
from program import Program, each_device, op, region, repeat, sync, sync_device, sync_devices


def kernel(draw, p, stream, name, member=""):
    """A kernel of 20 us to 1 ms: on a part of the GPU, on all of it, or bound by memory."""
    kind = draw.one("part", "whole", "memory", "product")
    keys = {"each": "device"} if member else {}
    if kind == "memory":
        bytes_ = draw.size(8 * MIB, 200 * MIB)
        p.buffer(name, bytes_, **keys)
        return op("elementwise", stream=stream, src=name + member, dst=name + member)
    if kind == "product":
        side = draw.width(600, 2600)
        return Product(p, name, side, draw.width(600, 2600), side, draw.dtype(), **keys).on(
            stream, member)
    return op("spin", stream=stream, duration=draw.time(20, 600),
              blocks=draw.whole(4, 60) if kind == "part" else draw.one(132, 200, 264))


def fork_join(draw, gpus, number):
    p = Program("fork_and_join", "Branches leave one stream and come back to it, by events.")
    branches = draw.whole(2, 4)
    p.stream("trunk"), p.stream("branch", count=branches)
    p.event("fork"), p.event("join", branches)
    first, last = kernel(draw, p, "trunk", "first"), kernel(draw, p, "trunk", "last")
    work = [kernel(draw, p, f"branch({b})", f"w{b}") for b in range(branches)]
    forked = [first, op("event_record", stream="trunk", event="fork")]
    for b, one in enumerate(work):
        forked += [op("stream_wait_event", stream=f"branch({b})", event="fork"), one,
                   op("event_record", stream=f"branch({b})", event=f"join({b})"),
                   op("stream_wait_event", stream="trunk", event=f"join({b})")]
    straight = [first] + [{k: {**v, "stream": "trunk"} for k, v in one.items()} for one in work]
    times = draw.whole(1, 6)
    p.thread(*in_turn(
        p, region("forked", repeat(times, *forked, last), sync("trunk")),
        region("in_one_stream", repeat(times, *straight, last), sync("trunk")),
        region("branches_without_order", repeat(times, *work), sync_device())))
    return p


def round_robin(draw, gpus, number):
    """Independent work over several streams, also with one hardware queue."""
    queues = {"CUDA_DEVICE_MAX_CONNECTIONS": 1} if number % 2 else None
    p = Program("independent_streams", "Independent kernels spread over several streams" +
                (", with one hardware queue." if queues else "."), environment=queues)
    count, times = draw.whole(3, 10), draw.whole(2, 6)
    p.stream("s", count=count)
    p.event("done", count)
    blocks, duration = draw.whole(4, 66), draw.time(15, 250)
    one = op("spin", stream="s(i)", duration=duration, blocks=blocks)
    p.buffer("x", draw.size(64 * KIB, 16 * MIB), count=count)
    two = op("elementwise", stream="s(i)", src="x(i)", dst="x(i)")
    third = kernel(draw, p, "s(i)", "shared") if draw.chance(0.5) else two
    if "gemm" in third or third.get("elementwise", {}).get("src") == "shared":
        third = op("spin", stream="s(i)", duration=draw.time(10, 100), blocks=132)
    p.thread(*in_turn(
        p, region("breadth_first", repeat(times, repeat(count, one, index="i")), sync_device()),
        region("depth_first", repeat(count, repeat(times, one, two), index="i"), sync_device()),
        region("mixed", repeat(times, repeat(count, one, two, third, index="i")), sync_device()),
        region("events_waited_for",
               repeat(count, one, op("event_record", stream="s(i)", event="done(i)"), index="i"),
               repeat(count, op("event_synchronize", event="done(i)"),
                      op("host_compute", duration=draw.time(5, 60)), index="i"))))
    return p


def host_functions(draw, gpus, number):
    p = Program("host_functions", "Functions of the host between kernels, and threads they wake.")
    p.stream("s"), p.stream("t")
    p.signal("done")
    times, think = draw.whole(4, 12), draw.time(5, 100)
    one, other = kernel(draw, p, "s", "a"), kernel(draw, p, "t", "b")
    call = op("host_func", stream="s", duration=think)
    small = op("spin", stream="s", duration=draw.time(5, 60), blocks=8)
    p.thread(region("functions_between", repeat(times, small, call), sync("s")),
             region("functions_beside", repeat(times, small, call, other), sync_device()),
             op("host_barrier"),
             region("another_thread_is_woken", repeat(times, one, op(
                 "host_func", stream="s", signal="done")), sync("s")))
    p.thread(op("host_barrier"),
             region("woken", repeat(times, op("host_wait", signal="done"),
                                    op("host_compute", duration=think))), name="other")
    return p


def threads(draw, gpus, number):
    """Host threads with streams of their own; they meet, or hand work on."""
    p = Program("host_threads", "Two host threads with streams of their own hand work on.")
    p.stream("first"), p.stream("second")
    rounds = draw.whole(3, 20)
    p.event("made", 2), p.signal("handed"), p.signal("taken")
    a, b = kernel(draw, p, "first", "a"), kernel(draw, p, "second", "b")
    host = op("host_compute", duration=draw.time(5, 120))
    p.thread(op("host_barrier", name="one"),
             region("producer", repeat(rounds, host, a,
                                       op("event_record", stream="first", event="made(0)"),
                                       op("host_signal", signal="handed"),
                                       op("host_wait", signal="taken")), sync("first")),
             op("host_barrier", name="two"),
             region("first_alone", repeat(rounds, a, host), sync("first")), name="one")
    p.thread(op("host_barrier", name="one"),
             region("consumer", repeat(rounds, op("host_wait", signal="handed"),
                                       op("stream_wait_event", stream="second", event="made(0)"),
                                       b, op("host_signal", signal="taken")), sync("second")),
             op("host_barrier", name="two"),
             region("second_beside", repeat(rounds, b, sync("second"))), name="two")
    return p


def tasks(draw, gpus, number):
    """A graph of tasks without streams; the simulator and CUDA place them."""
    p = Program("tasks", "Operations without streams: what depends on what decides.", gpus)
    bytes_ = draw.size(2 * MIB, 64 * MIB)
    p.buffer("host", bytes_, "pinned"), p.buffer("back", bytes_, "pinned")
    for name in ("x", "y", "z", "w"):
        p.buffer(name, bytes_)
    long, short = draw.time(200, 1500), draw.time(20, 300)
    blocks = draw.one(8, 32, 66)
    tasks_ = [op("memcpy_async", id="load", src="host", dst="x"),
              op("elementwise", id="one", src="x", dst="y"),
              op("elementwise", id="two", src="x", dst="z"),
              op("elementwise", id="sum", srcs=["y", "z"], dst="w"),
              op("memcpy_async", id="store", src="w", dst="back"),
              op("spin", id="side", duration=long, blocks=blocks),
              op("host_compute", id="think", duration=short)]
    if gpus == 2:
        p.buffer("far", bytes_, device=1)
        tasks_ += [op("memcpy_async", id="across", src="y", dst="far"),
                   op("elementwise", id="there", src="far", dst="far", device=1),
                   op("spin", id="side_there", device=1, duration=long, blocks=blocks)]
    ends = [sync_device(d) for d in range(gpus)]
    start = [op("enable_peer_access", device=0, peer=1)] if gpus == 2 else []
    p.thread(*start, *ends, region("all_tasks", op("task_graph", tasks=tasks_), *ends),
             region("the_first_half", op("task_graph", tasks=tasks_[:4]), *ends),
             region("sides_only", op("task_graph", tasks=[t for t in tasks_ if "spin" in t or
                                                          "host_compute" in t]), *ends))
    return p


def two_gpus(draw, gpus, number):
    """One thread drives two GPUs; events order work between them."""
    p = Program("streams_of_two_gpus", "One host thread drives two GPUs, and orders them by "
                "events.", 2)
    p.stream("s", each="device")
    p.event("ready", 2)
    bytes_, rounds = draw.size(256 * KIB, 64 * MIB), draw.whole(3, 12)
    p.buffer("x", bytes_, each="device"), p.buffer("inbox", bytes_, each="device")
    work = kernel(draw, p, "s(d)", "k", "(d)")
    on = lambda d: {k: {kk: vv.replace("(d)", f"({d})") if isinstance(vv, str) else vv
                        for kk, vv in v.items()} for k, v in work.items()}
    hand = []
    for here, there in ((0, 1), (1, 0)):
        hand += [on(here), op("memcpy_async", stream=f"s({here})", src=f"x({here})",
                              dst=f"inbox({there})"),
                 op("event_record", stream=f"s({here})", event=f"ready({here})"),
                 op("stream_wait_event", stream=f"s({there})", event=f"ready({here})")]
    access = [op("enable_peer_access", device=a, peer=1 - a) for a in (0, 1)]
    tiny = op("spin", stream="s(d)", duration="3us")
    p.thread(*access, *in_turn(
        p, region("both_at_once", repeat(rounds, each_device(work)), sync_devices()),
        region("handed_to_and_fro", repeat(rounds, *hand), sync_devices(), per=rounds),
        loop("tiny_kernels_on_both", 6, draw, each_device(tiny), end=sync_devices(),
             high_us=2000, per=True)))
    return p


def two_threads(draw, gpus, number):
    """A thread per GPU; the second waits for events of the first."""
    p = Program("threads_of_two_gpus", "A host thread for each GPU; they meet after each round.", 2)
    p.stream("s", each="device")
    rounds = draw.whole(3, 20)
    work = kernel(draw, p, "s(d)", "k", "(d)")
    tiny = op("spin", stream="s(d)", duration=draw.time(2, 10))
    on = lambda one, d: {k: {kk: vv.replace("(d)", f"({d})") if isinstance(vv, str) else vv
                             for kk, vv in v.items()} for k, v in one.items()}
    for d in range(2):
        p.thread(op("host_barrier", name="start"),
                 region(f"rounds_{d}", repeat(rounds, on(work, d), sync(f"s({d})"),
                                              op("host_barrier", name="round"))),
                 op("host_barrier", name="next"),
                 region(f"launches_{d}", repeat(200, on(tiny, d)), sync(f"s({d})"), per=200),
                 name=f"gpu_{d}")
    return p


VARIANTS = {1: [fork_join, round_robin, host_functions, round_robin, threads, tasks, fork_join],
            2: [two_gpus, two_threads, tasks, two_gpus, two_threads]}
