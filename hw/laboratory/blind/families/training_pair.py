"""Steps of training on two GPUs: data parallel, tensor parallel, sharded, pipelined."""

from draw import ELEMENT, move_us
from families.common import Product, elementwise_us, in_turn
from program import Program, each_device, group, op, region, repeat, sync, sync_device, sync_devices


def data_parallel(draw, gpus, number):
    p = Program("data_parallel", "Gradients are summed in buckets, behind or beside the backward "
                "pass.", gpus, gpus)
    p.torch_world()
    dtype, buckets = draw.dtype(), draw.whole(2, 8)
    bucket = draw.size(1 << 18, 1 << 26)
    x = Product(p, "layer", *(draw.width(900, 4000) for _ in range(3)), dtype)
    grad = p.buffer("grad", bucket, count=buckets, contents="zeros")
    p.event("summed", buckets)
    gemms = draw.times(x.us, 80, 700, 20)
    backward = repeat(gemms, x.on())
    keys = dict(group="world", buffer="grad(b)", type="float32", op=draw.one("sum", "avg"))
    update = op("elementwise", srcs=["grad(b)"], dst="grad(b)")
    p.thread(*in_turn(
        p, region("backward_alone", repeat(buckets, backward), sync_device()),
        region("summed_behind", repeat(buckets, backward),
               repeat(buckets, op("all_reduce", **keys), index="b"), sync_device()),
        region("summed_beside",
               repeat(buckets, backward, op("all_reduce", **keys, **{"async": True},
                                            work="summed(b)"), index="b"),
               repeat(buckets, op("work_wait", work="summed(b)"), update, index="b"),
               sync_device())))
    return p


def tensor_parallel(draw, gpus, number):
    p = Program("tensor_parallel", "Layers that are split over two GPUs, with sums in the way.",
                gpus, gpus)
    p.torch_world()
    dtype, tokens = draw.one("bfloat16", "float16"), draw.width(100, 4000)
    hidden, depth = draw.one(1024, 1600, 2048, 3072, 4096), draw.whole(2, 5)
    up = Product(p, "up", tokens, hidden * 2, hidden, dtype)
    down = Product(p, "down", tokens, hidden, hidden * 2, dtype, a=up.names["c"])
    gelu = op("elementwise", src=up.names["c"], dst=up.names["c"], type=dtype)
    whole = dict(group="world", buffer=down.names["c"], type=dtype)
    part_size = f"{tokens * hidden * 2 // gpus // 2 * 2}B"
    part = p.buffer("part", tokens * hidden * 2)
    scatter = op("reduce_scatter", group="world", input=down.names["c"], output=part, type=dtype,
                 size=part_size)
    whole_input = p.buffer("whole", tokens * hidden * 2)
    gather = op("all_gather", group="world", input=part, output=whole_input, type=dtype,
                size=part_size)
    p.thread(*in_turn(
        p, region("layers", repeat(depth, up.on(), gelu, down.on(), op("all_reduce", **whole)),
                  sync_device(), per=depth),
        region("sequence_parallel", repeat(depth, gather, up.on(), gelu, down.on(), scatter),
               sync_device(), per=depth),
        region("without_sums", repeat(depth, up.on(), gelu, down.on()), sync_device()),
        region("sums_only", repeat(depth * 2, op("all_reduce", **whole)), sync_device())))
    return p


def sharded(draw, gpus, number):
    p = Program("sharded", "Weights are gathered before each layer, gradients scattered behind it.",
                gpus, gpus)
    p.torch_world()
    dtype, depth = draw.one("bfloat16", "float16", "float32"), draw.whole(2, 6)
    m, n, k = draw.width(500, 3000), draw.width(800, 4000), draw.width(800, 4000)
    x = Product(p, "layer", m, n, k, dtype)
    shard = p.buffer("shard", n * k * ELEMENT[dtype] // (4 * gpus) * 4, count=2)
    full = p.buffer("full", n * k * ELEMENT[dtype] // (4 * gpus) * 4 * gpus, count=2)
    p.event("gathered", 2)
    p.event("scattered", 2)
    ask = lambda i: op("all_gather", group="world", input=f"shard({i})", output=f"full({i})",
                       type=dtype, **{"async": True}, work=f"gathered({i})")
    give = op("reduce_scatter", group="world", input="full(i % 2)", output="shard(i % 2)",
              type=dtype, **{"async": True}, work="scattered(i % 2)")
    p.thread(*in_turn(
        p, region("forward_prefetched", ask(0),
                  repeat(depth, op("work_wait", work="gathered(i % 2)"), ask("(i + 1) % 2"),
                         x.on(), x.on(), index="i"),
                  op("work_wait", work=f"gathered({depth % 2})"), sync_device()),
        region("forward_in_the_way",
               repeat(depth, op("all_gather", group="world", input="shard(i % 2)",
                                output="full(i % 2)", type=dtype), x.on(), x.on(), index="i"),
               sync_device()),
        region("backward",
               repeat(depth, x.on(), x.on(), give, op("work_wait", work="scattered(i % 2)"),
                      index="i"), sync_device())))
    return p


def pipelined(draw, gpus, number):
    """Two stages: rank 0 sends activations to rank 1, which sends gradients back."""
    p = Program("two_stages", "Micro-batches go through two stages, one on each GPU.", 2, 2)
    p.torch_world()
    dtype, micro = draw.dtype(), draw.whole(2, 6)
    tokens, hidden = draw.width(300, 4000), draw.width(700, 4000)
    x = Product(p, "stage", tokens, hidden, hidden, dtype)
    act = p.buffer("act", tokens * hidden * ELEMENT[dtype], count=micro)
    depth = draw.times(x.us, 100, 600, 8)
    work = repeat(depth, x.on())
    send = lambda to: op("send", group="world", buffer="act(i)", type=dtype, dst=to)
    recv = lambda of: op("recv", group="world", buffer="act(i)", type=dtype, src=of)
    settle = [sync_device(), op("host_barrier")]
    p.thread(*settle, region("first_stage_forward", repeat(micro, work, send(1), index="i"),
                             sync_device()),
             *settle, region("first_stage_both", repeat(micro, work, send(1), index="i"),
                             repeat(micro, recv(1), work, work, index="i"), sync_device()),
             name="first", process=0)
    p.thread(*settle, region("second_stage_forward", repeat(micro, recv(0), work, index="i"),
                             sync_device()),
             *settle, region("second_stage_both", repeat(micro, recv(0), work, index="i"),
                             repeat(micro, work, work, send(0), index="i"), sync_device()),
             name="second", process=1)
    return p


def one_process(draw, gpus, number):
    """Data parallel as one process does it: a group of calls for both GPUs."""
    p = Program("data_parallel_one_process", "One host thread trains on two GPUs, and sums their "
                "gradients.", gpus)
    p.world()
    p.stream("work", each="device")
    dtype, bytes_ = draw.dtype(), draw.size(1 << 16, 1 << 27)
    x = Product(p, "layer", *(draw.width(600, 4000) for _ in range(3)), dtype, each="device")
    p.buffer("grad", bytes_, each="device", contents="zeros")
    gemms = draw.times(x.us, 60, 900, 20)
    compute = each_device(repeat(gemms, x.on("work(d)", "(d)")))
    reduce = group(each_device(op("nccl_all_reduce", comm="world(d)", stream="work(d)",
                                  buffer="grad(d)", type="float32", op="sum")))
    update = each_device(op("elementwise", stream="work(d)", src="grad(d)", dst="grad(d)"))
    end = each_device(sync("work(d)"))
    times = draw.times(gemms * x.us + move_us(bytes_, "nccl") + elementwise_us(bytes_), 700, 7000,
                       20)
    p.thread(*in_turn(p, region("steps", repeat(times, compute, reduce, update), end, per=times),
                      region("steps_that_wait", repeat(times, compute, reduce, update, end)),
                      region("compute_only", repeat(times, compute), end),
                      region("sums_only", repeat(times * 2, reduce), sync_devices())))
    return p


ON_SEVERAL = [data_parallel, tensor_parallel, one_process, sharded]
VARIANTS = [data_parallel, tensor_parallel, pipelined, one_process, sharded, data_parallel,
            tensor_parallel, one_process, pipelined, sharded]
