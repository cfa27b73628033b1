"""Groups of NCCL calls: many small ones, mixed kinds and sizes, beside what else a user could do."""

from draw import KIB, MIB, move_us
from families.collectives import call, transfer, unit
from families.common import in_turn
from program import Program, each_device, group, op, region, repeat, sync, sync_device, sync_devices


def many_small(draw, gpus, number):
    """Many tensors: call by call, in one group, or packed into one buffer first."""
    p = Program("many_tensors", "Many small tensors are summed: one by one, grouped, or packed.",
                gpus, gpus)
    p.world(), p.stream("s")
    count, bytes_ = draw.whole(8, 80), draw.size(128, 512 * KIB, 8)
    p.buffer("tensor", bytes_, count=count), p.buffer("flat", count * bytes_)
    keys = dict(comm="world", stream="s", type="float32")
    one = repeat(count, op("nccl_all_reduce", **keys, buffer="tensor(i)"), index="i")
    pack = lambda to: op("memcpy_async", stream="s", size=f"{bytes_}B", **(
        dict(src="tensor(i)", dst="flat", dst_offset=f"i * {bytes_}B") if to else
        dict(src="flat", dst="tensor(i)", src_offset=f"i * {bytes_}B")))
    times = draw.whole(3, 8)
    p.thread(*in_turn(
        p, region("one_by_one", repeat(times, one), sync("s"), per=times),
        region("in_a_group", repeat(times, group(one)), sync("s"), per=times),
        region("packed", repeat(times, repeat(count, pack(True), index="i"),
                                op("nccl_all_reduce", **keys, buffer="flat"),
                                repeat(count, pack(False), index="i")), sync("s"), per=times)))
    return p


def mixed(draw, gpus, number):
    """Different operations and sizes in one group."""
    p = Program("mixed_groups", "Different operations and sizes in one group, beside single calls.",
                gpus, gpus)
    p.world(), p.stream("s")
    regions = []
    for g in range(2):
        ops, us = [], 20
        for i in range(draw.whole(2, 6)):
            kind = draw.one("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                            "all_reduce")
            dtype = draw.one("float32", "float32", "bfloat16")
            bytes_ = draw.size(256, 32 * MIB, unit(dtype, gpus))
            x, y = p.buffer(f"x{g}{i}", bytes_), p.buffer(f"y{g}{i}", bytes_)
            ops.append(call(draw, kind, x, y, bytes_, ranks=gpus, comm="world", stream="s",
                            type=dtype))
            us += move_us(bytes_, "nccl")
        times = draw.times(us, 500, 5000, 40)
        regions += [region(f"grouped_{g}", repeat(times, group(*ops)), sync("s"), per=times),
                    region(f"single_{g}", repeat(times, *ops), sync("s"), per=times)]
    p.thread(*in_turn(p, *regions))
    return p


def transfers(draw, gpus, number):
    """Several sends and receives in one group, as an exchange of parts of different sizes."""
    processes = draw.one(1, 2)
    p = Program("grouped_transfers", "Sends and receives in groups: one, several, and with a sum.",
                2, processes)
    d = "(d)" if processes == 1 else ""
    each = "device" if d else None
    p.world(), p.stream("s", each=each)
    keys = dict(comm="world" + d, stream="s" + d, type="float32")
    wrap = (lambda *ops: group(each_device(*ops))) if d else group
    end = each_device(sync("s(d)")) if d else sync("s")
    parts, us = [], 20
    for i in range(draw.whole(2, 6)):
        bytes_ = draw.size(256, 24 * MIB, 8)
        x, y = (p.buffer(f"{name}{i}", bytes_, each=each) for name in "xy")
        parts.append(transfer(x, y, bytes_, d, **keys))
        us += move_us(bytes_, "nccl")
    every = [one for part in parts for one in part]
    times = draw.times(us, 500, 5000, 30)
    total = p.buffer("total", draw.size(1 * KIB, 16 * MIB, 8), each=each)
    sum_ = op("nccl_all_reduce", **keys, buffer=total + d)
    p.thread(*in_turn(
        p, region("all_in_one_group", repeat(times, wrap(*every)), end, per=times),
        region("a_group_for_each", repeat(times, *(wrap(*part) for part in parts)), end, per=times),
        region("with_a_sum", repeat(times, wrap(*every, sum_)), end, per=times)))
    return p


def one_thread(draw, gpus, number):
    """Many small sums of both GPUs from one thread: a group for each, or one for all."""
    p = Program("groups_of_one_thread", "One thread sums many tensors of two GPUs.", gpus)
    p.world(), p.stream("s", each="device")
    count, bytes_ = draw.whole(4, 40), draw.size(256, 2 * MIB, 8)
    p.buffer("tensor", bytes_, each="device", count=count)
    p.buffer("flat", count * bytes_, each="device")
    keys = dict(comm="world(d)", stream="s(d)", type="float32")
    one = op("nccl_all_reduce", **keys, buffer="tensor(d, i)")
    whole = op("nccl_all_reduce", **keys, buffer="flat(d)")
    end, times = each_device(sync("s(d)")), draw.whole(4, 10)
    p.thread(*in_turn(
        p, region("a_group_for_each", repeat(count, group(each_device(one)), index="i"), end,
                  per=count),
        region("one_group_for_all",
               repeat(times, group(repeat(count, each_device(one), index="i"))), end, per=times),
        region("one_large_tensor", repeat(times, group(each_device(whole))), end, per=times)))
    return p


VARIANTS = {2: [many_small, mixed, transfers, one_thread], 4: [many_small, mixed, one_thread]}
