"""NCCL's nine operations: alone, in loops, by size and type, from processes and from one thread."""

from draw import ELEMENT, KIB, MIB, move_us
from families.common import in_turn
from program import Program, each_device, group, op, region, repeat, sync, sync_device, sync_devices

NINE = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all",
        "gather", "scatter", "send_recv"]


def call(draw, kind, x, y, bytes_, prefix="nccl_", d="", ranks=2, **keys):
    """One operation; `bytes_` is what the larger side of it holds, of all ranks."""
    whole, part = f"{bytes_}B", f"{bytes_ // ranks}B"
    send, recv = ("send_buffer", "recv_buffer") if prefix else ("input", "output")
    if kind in ("all_reduce", "broadcast", "reduce"):
        sides = {"buffer": x + d} if draw.chance(0.5) else {send: x + d, recv: y + d}
        size = whole
    else:
        sides, size = {send: x + d, recv: y + d}, part
    keys = dict(keys, **sides, size=size)
    if kind in ("all_reduce", "reduce", "reduce_scatter"):
        keys["op"] = draw.one("sum", "sum", "avg", "max")
    if kind in ("broadcast", "reduce", "gather", "scatter"):
        keys["root"] = draw.whole(0, ranks - 1)
    return op(prefix + kind, **keys)


def transfer(x, y, bytes_, d="", ranks=2, **keys):
    """Two ranks send to each other; more of them send around."""
    me, all_ = ("d", "devices") if d else ("process", "processes")
    to, of = [f"1 - {me}"] * 2 if ranks == 2 else [f"({me} {way} 1) % {all_}" for way in "+-"]
    return [op("nccl_send", **keys, buffer=x + d, size=f"{bytes_}B", peer=to),
            op("nccl_recv", **keys, buffer=y + d, size=f"{bytes_}B", peer=of)]


def unit(dtype, ranks=2):
    return ranks * ELEMENT[dtype]


def of_processes(draw, gpus, number):
    p = Program("collectives", "Some of NCCL's operations in loops, a process for each GPU.",
                gpus, gpus)
    p.world(), p.stream("s")
    regions = []
    for i in range(4):
        kind = NINE[(number * 4 + i) % 9]
        dtype = draw.one("float32", "float32", "bfloat16", "float16", "int32")
        bytes_ = draw.size(64, 192 * MIB, unit(dtype, gpus))
        x, y = p.buffer(f"x{i}", bytes_), p.buffer(f"y{i}", bytes_)
        keys = dict(comm="world", stream="s", type=dtype)
        one = group(*transfer(x, y, bytes_, ranks=gpus, **keys)) if kind == "send_recv" else \
            call(draw, kind, x, y, bytes_, ranks=gpus, **keys)
        times = draw.times(move_us(bytes_, "nccl"), 500, 5000, 100)
        regions.append(region(f"{kind}_{i}", repeat(times, one), sync("s"), per=times))
    p.thread(*in_turn(p, *regions))
    return p


def of_one_thread(draw, gpus, number):
    p = Program("collectives_of_one_thread", "One host thread calls NCCL for both GPUs, in groups.",
                gpus)
    p.world(), p.stream("s", each="device")
    regions = []
    for i in range(4):
        kind = NINE[(number * 4 + i + 3) % 9]
        dtype = draw.one("float32", "float32", "bfloat16", "float16")
        bytes_ = draw.size(64, 192 * MIB, unit(dtype, gpus))
        x, y = (p.buffer(f"{name}{i}", bytes_, each="device") for name in "xy")
        keys = dict(comm="world(d)", stream="s(d)", type=dtype)
        ops = transfer(x, y, bytes_, "(d)", ranks=gpus, **keys) if kind == "send_recv" else \
            [call(draw, kind, x, y, bytes_, d="(d)", ranks=gpus, **keys)]
        times = draw.times(move_us(bytes_, "nccl"), 500, 5000, 100)
        regions.append(region(f"{kind}_{i}", repeat(times, group(each_device(*ops))),
                              each_device(sync("s(d)")), per=times))
    p.thread(*in_turn(p, *regions))
    return p


def sizes(draw, gpus, number):
    """One operation over a range of sizes that are no powers of two."""
    p = Program("collective_by_size", "One operation for a range of sizes.", gpus, gpus)
    p.world(), p.stream("s")
    kind = NINE[draw.whole(0, 7)]
    first = draw.size(100, 3000, 8)
    factor = draw.whole(5, 13)
    count = 4
    largest = first * factor ** (count - 1)
    p.buffer("x", gpus * largest), p.buffer("y", gpus * largest)
    one = call(draw, kind, "x", "y", largest, ranks=gpus, comm="world", stream="s", type="float32")
    next(iter(one.values()))["size"] = f"{first}B * {factor} ** i"
    times = draw.whole(12, 30)
    p.thread(repeat(count, sync_device(), op("host_barrier"),
                    region(kind, repeat(times, one), sync("s"), per=times), index="i"))
    return p


def torch(draw, gpus, number):
    """torch.distributed: in the way, and beside a kernel until the work is waited for."""
    p = Program("torch_collectives", "Operations of torch.distributed between and beside kernels.",
                gpus, gpus)
    p.torch_world(), p.event("w")
    regions = []
    for i in range(4):
        kind = NINE[(number * 3 + i) % 8]
        dtype = draw.one("float32", "bfloat16")
        bytes_ = draw.size(1 * KIB, 128 * MIB, unit(dtype, gpus))
        x, y = p.buffer(f"x{i}", bytes_), p.buffer(f"y{i}", bytes_)
        kernel = op("spin", duration=draw.time(10, 600), blocks=draw.one(8, 32, 100))
        one = call(draw, kind, x, y, bytes_, "", ranks=gpus, group="world", type=dtype)
        times = draw.times(move_us(bytes_, "nccl") + 100, 500, 6000, 40)
        if draw.chance(0.5):
            next(iter(one.values())).update({"async": True, "work": "w"})
            body, name = [one, kernel, op("work_wait", work="w")], f"{kind}_beside_{i}"
        else:
            body, name = [kernel, one], f"{kind}_behind_{i}"
        ends = [op("barrier", group="world")] if draw.chance(0.3) else []
        regions.append(region(name, repeat(times, *body), *ends, sync_device(), per=times))
    p.thread(*in_turn(p, *regions))
    return p


def late(draw, gpus, number):
    """One rank comes late, by kernels or by its host."""
    p = Program("late_rank", "A collective waits for the rank that comes last.", gpus, gpus)
    p.world(), p.stream("s")
    bytes_ = draw.size(256, 64 * MIB, 4 * gpus)
    p.buffer("x", bytes_), p.buffer("y", bytes_)
    one = call(draw, draw.one(*NINE[:8]), "x", "y", bytes_, ranks=gpus, comm="world",
               stream="s", type="float32")
    late_us, rounds = draw.whole(30, 600), draw.whole(5, 15)
    by_kernel = op("spin", stream="s", duration=f"10us + process * {late_us}us", blocks=16)
    by_host = op("host_compute", duration=f"10us + process * {late_us}us")
    p.thread(*in_turn(p, region("late_by_a_kernel", repeat(rounds, by_kernel, one), sync("s")),
                      region("late_by_its_host", repeat(rounds, by_host, one, sync("s"))),
                      region("both_in_time", repeat(rounds, one), sync("s"), per=rounds)))
    return p


VARIANTS = [of_processes, of_one_thread, of_processes, torch, of_one_thread, sizes, of_processes,
            late, of_one_thread, torch, sizes, of_processes, late, torch, of_one_thread, sizes]
