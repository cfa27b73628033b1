"""From GPU to GPU: peer copies, sends and receives, halos, ping-pong, staging through the host."""

from draw import KIB, MIB, move_us
from families.common import elementwise_us, in_turn, loop
from program import Program, each_device, group, op, region, repeat, sync, sync_device, sync_devices


def peer_copies(draw, gpus, number):
    """Copies between two GPUs of one process, with and without peer access."""
    access = number % 3 != 2
    p = Program("peer_copies", f"Copies between two GPUs, with{'' if access else 'out'} peer "
                "access.", 2)
    p.stream("s", each="device"), p.stream("t", each="device")
    bytes_ = draw.size(4 * KIB, (256 if access else 48) * MIB)
    for name in ("x", "y"):
        p.buffer(name, bytes_, each="device")
    there = op("memcpy_async", stream="s(0)", src="x(0)", dst="y(1)")
    back = op("memcpy_async", stream="s(1)", src="x(1)", dst="y(0)")
    within = op("memcpy_async", stream="t(0)", src="x(0)", dst="y(0)")
    start = [op("enable_peer_access", device=d, peer=1 - d) for d in (0, 1)] if access else []
    us = move_us(bytes_, "peer" if access else "pinned")
    end = sync_devices()
    p.thread(*start, *in_turn(
        p, loop("there", us, draw, there, end=end), loop("both_ways", us, draw, there, back, end=end),
        loop("there_and_within", us, draw, there, within, end=end),
        loop("waited_for", us + 10, draw, there, sync("s(0)"), back, sync("s(1)"), end=end,
             high_us=3000)))
    return p


def halo(draw, gpus, number):
    """A stencil: edges go to the neighbour while the inner part is computed."""
    p = Program("halo_exchange", "A stencil on two GPUs: edges are exchanged beside the inner part.",
                2, 2)
    p.world(), p.stream("edges"), p.stream("inner"), p.event("edge_ready"), p.event("edge_there")
    edge, field = draw.size(8 * KIB, 8 * MIB), draw.size(8 * MIB, 200 * MIB)
    for name in ("edge", "halo"):
        p.buffer(name, edge)
    p.buffer("field", field), p.buffer("next", field)
    keys = dict(comm="world", stream="edges", type="float32", peer="1 - process")
    swap = group(op("nccl_send", **keys, buffer="edge"), op("nccl_recv", **keys, buffer="halo"))
    inner = op("elementwise", stream="inner", src="field", dst="next")
    own = op("elementwise", stream="edges", srcs=["halo", "edge"], dst="edge")
    steps = draw.times(elementwise_us(field) + 40, 500, 6000, 30)
    order = [op("event_record", stream="edges", event="edge_there"),
             op("stream_wait_event", stream="inner", event="edge_there"),
             op("event_record", stream="inner", event="edge_ready"),
             op("stream_wait_event", stream="edges", event="edge_ready")]
    p.thread(*in_turn(
        p, region("overlapped", repeat(steps, swap, inner, own, *order), sync_device(), per=steps),
        region("one_after_the_other", repeat(steps, swap, own, *order[:2], inner, *order[2:]),
               sync_device(), per=steps),
        region("exchange_only", repeat(steps * 2, swap), sync_device(), per=steps * 2)))
    return p


def ping_pong(draw, gpus, number):
    """A buffer goes to and fro."""
    p = Program("ping_pong", "A buffer goes to the other GPU and back, some sizes.", 2, 2)
    p.world(), p.stream("s")
    small, large = draw.size(64, 64 * KIB), draw.size(256 * KIB, 64 * MIB)
    p.buffer("x", large), p.buffer("y", large)
    rounds = draw.whole(5, 40)
    fewer = draw.times(2 * move_us(large, "nccl"), 500, 4000, rounds)

    def turn(rank, size):
        keys = dict(comm="world", stream="s", type="float32", size=f"{size}B", peer=1 - rank)
        there = op("nccl_send", **keys, buffer="x"), op("nccl_recv", **keys, buffer="y")
        return there if rank == 0 else (there[1], there[0])

    settle = [sync_device(), op("host_barrier")]
    for rank in range(2):
        p.thread(*settle, region("small_to_and_fro", repeat(rounds, *turn(rank, small)), sync("s"),
                                 per=rounds),
                 *settle, region("large_to_and_fro", repeat(fewer, *turn(rank, large)), sync("s"),
                                 per=fewer),
                 *settle, region("small_waited_for", repeat(rounds, turn(rank, small)[0], sync("s"),
                                                            turn(rank, small)[1], sync("s"))),
                 name=f"rank_{rank}", process=rank)
    return p


def through_the_host(draw, gpus, number):
    """From one GPU to the other through pinned memory, in parts, against the direct way."""
    p = Program("through_the_host", "Data goes from GPU to GPU through pinned memory, in parts.", 2)
    p.stream("s", each="device"), p.event("down", 2), p.event("up", 2)
    part, parts = draw.size(256 * KIB, 16 * MIB), draw.whole(4, 12)
    p.buffer("x", part, each="device"), p.buffer("stage", part, "pinned", count=2)
    down = op("memcpy_async", stream="s(0)", src="x(0)", dst="stage(i % 2)")
    up = op("memcpy_async", stream="s(1)", src="stage(i % 2)", dst="x(1)")
    end = sync_devices()
    p.thread(*in_turn(
        p, region("two_buffers", repeat(
            parts, op("stream_wait_event", stream="s(0)", event="up(i % 2)"), down,
            op("event_record", stream="s(0)", event="down(i % 2)"),
            op("stream_wait_event", stream="s(1)", event="down(i % 2)"), up,
            op("event_record", stream="s(1)", event="up(i % 2)"), index="i"), end),
        region("host_waits_for_each", repeat(parts, down, sync("s(0)"), up, sync("s(1)"),
                                             index="i")),
        region("directly", op("enable_peer_access", device=0, peer=1),
               repeat(parts * 3, op("memcpy_async", stream="s(0)", src="x(0)", dst="x(1)")), end)))
    return p


def torch_ring(draw, gpus, number):
    """isend, irecv and their batch beside kernels, as context parallelism passes its keys on."""
    p = Program("torch_ring", "Batches of isend and irecv pass blocks on while kernels use them.",
                gpus, gpus)
    p.torch_world(), p.event("passed")
    bytes_, rounds = draw.size(64 * KIB, 64 * MIB), draw.whole(3, 12)
    p.buffer("mine", bytes_), p.buffer("theirs", bytes_)
    swap = op("batch_isend_irecv", group="world", work="passed", ops=[
        op("isend", buffer="mine", type="float32", dst="(process + 1) % processes"),
        op("irecv", buffer="theirs", type="float32", src="(process - 1) % processes")])
    work = op("spin", duration=draw.time(20, 800), blocks=draw.one(16, 60, 120))
    wait = op("work_wait", work="passed")
    p.thread(*in_turn(
        p, region("beside_a_kernel", repeat(rounds, swap, work, wait), sync_device(), per=rounds),
        region("in_the_way", repeat(rounds, swap, wait, work), sync_device(), per=rounds),
        region("exchange_alone", repeat(rounds * 2, swap, wait), sync_device(), per=rounds * 2)))
    return p


VARIANTS = {2: [peer_copies, ping_pong, halo, torch_ring, peer_copies, through_the_host,
                ping_pong, halo, peer_copies, torch_ring],
            4: [torch_ring]}
