"""CUDA graphs: captured steps, chains and branches, copies, NCCL in graphs; beside eager twins."""

from draw import KIB, MIB, move_us
from families.common import Product, in_turn
from families.launch_bound import tiny
from program import Program, op, region, repeat, sync, sync_device


def capture(stream, *ops, graph="step"):
    return op("graph_capture", graph=graph, stream=stream, ops=list(ops))


def chain(draw, gpus, number):
    p = Program("captured_chain", "A chain of small kernels, launched one by one and as a graph.")
    p.stream("s"), p.graph()
    ops = [tiny(draw, p, "s", i) for i in range(draw.whole(3, 8))]
    length, times = draw.whole(2, 12), draw.whole(5, 40)
    launch = op("graph_launch", graph="step", stream="s")
    p.thread(capture("s", repeat(length, *ops)), launch, sync("s"), *in_turn(
        p, region("eager", repeat(times, repeat(length, *ops)), sync("s"), per=times),
        region("as_a_graph", repeat(times, launch), sync("s"), per=times),
        region("graph_waited_for", repeat(times, launch, sync("s")), per=times)))
    return p


def branches(draw, gpus, number):
    count = draw.whole(2, 5)
    p = Program("captured_branches", "A graph with branches, launched some times.")
    p.stream("s"), p.stream("side", count=count), p.graph(), p.event("fork"), p.event("join", count)
    p.stream("t"), p.graph("straight")
    ops, plain = [op("event_record", stream="s", event="fork")], []
    for b in range(count):
        work = [tiny(draw, p, f"side({b})", b * 4 + i) for i in range(draw.whole(1, 4))]
        work.append(op("spin", stream=f"side({b})", duration=draw.time(5, 80),
                       blocks=draw.whole(1, 40)))
        ops += [op("stream_wait_event", stream=f"side({b})", event="fork"), *work,
                op("event_record", stream=f"side({b})", event=f"join({b})"),
                op("stream_wait_event", stream="s", event=f"join({b})")]
        plain += [{k: {**v, "stream": "t"} for k, v in one.items()} for one in work]
    times = draw.whole(4, 25)
    p.thread(capture("s", *ops), capture("t", *plain, graph="straight"),
             op("graph_launch", graph="step", stream="s"), sync("s"),
             op("graph_launch", graph="straight", stream="t"), sync("t"), *in_turn(
                 p, region("branches", repeat(times, op("graph_launch", graph="step", stream="s")),
                           sync("s"), per=times),
                 region("one_chain", repeat(times, op("graph_launch", graph="straight",
                                                      stream="t")), sync("t"), per=times),
                 region("eager_branches", repeat(times, *ops), sync("s"), per=times)))
    return p


def step(draw, gpus, number):
    """A captured inference step with copies in and out."""
    p = Program("captured_step", "An inference step with its copies as a graph, and without.")
    p.stream("s"), p.graph()
    dtype, batch = draw.one("bfloat16", "bfloat16", "float32"), draw.width(8, 1500)
    sides = [draw.width(200, 2500) for _ in range(draw.whole(3, 5))]
    e = 4 if dtype == "float32" else 2
    p.buffer("host", batch * sides[0] * e, "pinned")
    p.buffer("answer", batch * sides[-1] * e, "pinned")
    names = [p.buffer(f"act{i}", batch * side * e) for i, side in enumerate(sides)]
    ops, us = [op("memcpy_async", stream="s", src="host", dst=names[0])], 0
    for i, (k, n) in enumerate(zip(sides, sides[1:])):
        x = Product(p, f"l{i}", batch, n, k, dtype, a=names[i], c=names[i + 1])
        ops += [x.on("s"), op("elementwise", stream="s", src=names[i + 1], dst=names[i + 1],
                              type=dtype)]
        us += x.us + 5
    ops.append(op("memcpy_async", stream="s", src=names[-1], dst="answer"))
    us += move_us(batch * (sides[0] + sides[-1]) * e, "pinned")
    times = draw.times(us, 700, 6000, 40)
    launch = op("graph_launch", graph="step", stream="s")
    p.thread(capture("s", *ops), launch, sync("s"), *in_turn(
        p, region("eager", repeat(times, *ops), sync("s"), per=times),
        region("as_a_graph", repeat(times, launch), sync("s"), per=times),
        region("one_request_at_a_time", repeat(times, launch, sync("s"),
                                               op("host_compute", duration=draw.time(5, 80))))))
    return p


def collective(draw, gpus, number):
    """Layers of a step with NCCL between them, captured and not."""
    p = Program("captured_collectives", "Kernels and NCCL's calls as a graph in each process.",
                gpus, gpus)
    p.stream("s"), p.graph(), p.world()
    bytes_ = draw.size(1 * KIB, 64 * MIB, 32)
    p.buffer("x", bytes_), p.buffer("y", gpus * bytes_), p.buffer("part", bytes_ // gpus)
    keys = dict(comm="world", stream="s", type=draw.one("float32", "bfloat16"))
    calls = {"sum": op("nccl_all_reduce", **keys, buffer="x"),
             "gather": op("nccl_all_gather", **keys, send_buffer="x", recv_buffer="y"),
             "scatter": op("nccl_reduce_scatter", **keys, send_buffer="x", recv_buffer="part"),
             "to_all": op("nccl_all_to_all", **keys, send_buffer="x", recv_buffer="y",
                          size=f"{bytes_ // gpus}B"),
             "broadcast": op("nccl_broadcast", **keys, buffer="x", root=0)}
    side = draw.width(200, 2500)
    work = Product(p, "layer", side, side, draw.width(200, 2500), draw.dtype())
    picked = draw.some(draw.whole(1, 3), list(calls))
    ops = []
    for name in picked:
        ops += [work.on("s"), calls[name]]
    depth = draw.whole(1, 6)
    us = depth * len(picked) * (work.us + move_us(bytes_, "nccl"))
    times = draw.times(us, 700, 6000, 20)
    launch = op("graph_launch", graph="step", stream="s")
    p.thread(op("host_barrier"), capture("s", repeat(depth, *ops)), launch, sync("s"), *in_turn(
        p, region("eager", repeat(times, repeat(depth, *ops)), sync("s"), per=times),
        region("as_a_graph", repeat(times, launch), sync("s"), per=times),
        region("graph_waited_for", repeat(times, launch, sync("s")))))
    return p


VARIANTS = {1: [chain, step, branches, chain, step], 2: [collective], 4: [collective]}
