"""Two kinds of work at once, each alone and both together: every pair of what a GPU has."""

from draw import MIB, move_us
from families.common import Product, elementwise_us, in_turn
from program import Program, each_device, group, op, region, repeat, sync_device, sync_devices

ONE_GPU = ["upload", "download", "product", "memory", "cached", "reduction", "copy_within", "set",
           "half_a_gpu"]
TWO_GPUS = ONE_GPU[:6] + ["sum", "gather", "exchange", "broadcast", "peer_copy"]
HOST = ["fill", "pageable_upload", "host_copy"]
NEVER = [{"upload", "pageable_upload"}]


def work(draw, p, kind, stream, target_us):
    """Operations of a kind that take about `target_us`, on a stream of their own."""
    each = "device" if p.devices > 1 else None
    d = "(d)" if each else ""
    p.stream(stream, each=each)
    s, x = stream + d, f"{stream}_x"
    wrap = (lambda one: each_device(one)) if each else (lambda one: one)
    if kind == "product":
        mm = Product(p, stream, *(draw.width(800, 3500) for _ in range(3)), draw.dtype(), each=each)
        return repeat(most(target_us / mm.us), wrap(mm.on(s, d)))
    if kind in ("upload", "download"):
        bytes_ = draw.size(4 * MIB, 64 * MIB)
        p.buffer(x, bytes_, each=each)
        p.buffer(f"{stream}_host", bytes_, "pinned", count=p.devices if each else None)
        way = dict(src=f"{stream}_host{d}", dst=x + d)
        if kind == "download":
            way = dict(src=way["dst"], dst=way["src"])
        return repeat(most(target_us / move_us(bytes_, "pinned")),
                      wrap(op("memcpy_async", stream=s, **way)))
    if kind in ("memory", "cached", "reduction", "copy_within", "set"):
        bytes_ = draw.size(1 * MIB, 16 * MIB) if kind == "cached" else \
            draw.size(40 * MIB, 512 * MIB)
        p.buffer(x, bytes_, each=each), p.buffer(f"{stream}_y", bytes_, each=each)
        x, y = x + d, f"{stream}_y{d}"
        one = {"memory": op("elementwise", stream=s, src=x, dst=y),
               "cached": op("elementwise", stream=s, src=x, dst=x),
               "reduction": op("reduction", stream=s, src=x, dst=y, type="float32"),
               "copy_within": op("memcpy_async", stream=s, src=x, dst=y),
               "set": op("memset_async", stream=s, dst=x)}[kind]
        return repeat(most(target_us / elementwise_us(bytes_)), wrap(one))
    if kind == "half_a_gpu":
        return repeat(draw.whole(2, 6), op("spin", stream=s, duration=f"{round(target_us / 4)}us",
                                           blocks=draw.whole(30, 90)))
    return exchange(draw, p, kind, stream, target_us, d, wrap)


def exchange(draw, p, kind, stream, target_us, d, wrap):
    """Between the two GPUs: collectives and transfers, or copies by the copy engines."""
    bytes_ = draw.size(1 * MIB, 256 * MIB, 16)
    each = "device" if d else None
    x, y = (p.buffer(f"{stream}_{name}", bytes_, each=each) for name in "xy")
    times = most(target_us / move_us(bytes_, "nccl"))
    if kind == "peer_copy":
        return repeat(times, op("memcpy_async", stream=stream + "(0)", src=x + "(0)", dst=y + "(1)"))
    comm = p.world(f"{stream}_world")
    keys = dict(comm=comm + d, stream=stream + d, type=draw.one("float32", "bfloat16"))
    half = f"{bytes_ // 2}B"
    if kind == "exchange":
        peer = "1 - d" if d else "1 - process"
        both = [op("nccl_send", **keys, buffer=x + d, peer=peer),
                op("nccl_recv", **keys, buffer=y + d, peer=peer)]
        return repeat(times, group(each_device(*both) if d else both[0], *([] if d else both[1:])))
    call = {"sum": op("nccl_all_reduce", **keys, buffer=x + d),
            "gather": op("nccl_all_gather", **keys, send_buffer=x + d, recv_buffer=y + d, size=half),
            "broadcast": op("nccl_broadcast", **keys, buffer=x + d, root=0)}[kind]
    return repeat(times, group(wrap(call)) if d else call)


def host_work(draw, p, kind, target_us):
    """What the host thread itself does meanwhile."""
    if kind == "fill":
        p.buffer("numbers", draw.size(MIB // 4, 2 * MIB), "pageable")
        return op("host_fill", dst="numbers")
    if kind == "pageable_upload":
        bytes_ = draw.size(1 * MIB, 16 * MIB)
        p.stream("host_stream")
        p.buffer("pages", bytes_, "pageable"), p.buffer("there", bytes_)
        return op("memcpy_async", stream="host_stream", src="pages", dst="there")
    bytes_ = draw.size(1 * MIB, 16 * MIB)
    p.buffer("pages", bytes_, "pageable"), p.buffer("stage", bytes_, "pinned")
    return op("memcpy", src="pages", dst="stage")


def most(times, limit=200):
    return max(1, min(limit, round(times)))


def pair(draw, gpus, number):
    kinds = TWO_GPUS if gpus == 2 else ONE_GPU
    first = kinds[(number * 2 + 1) % len(kinds)] if gpus == 1 else TWO_GPUS[6 + number % 5]
    second = draw.one(*(kind for kind in kinds if kind != first))
    one_process = "peer_copy" in (first, second) or draw.chance(0.4)
    processes = 2 if gpus == 2 and not one_process else 1
    p = Program("two_at_once", f"{first} and {second}, alone and at once.".replace("_", " "), gpus,
                processes)
    target = draw.scale(600, 4000)
    a = work(draw, p, first, "one", target)
    b = work(draw, p, second, "two", target * draw.scale(0.4, 1.5))
    end = sync_devices() if p.devices > 1 else sync_device()
    access = [op("enable_peer_access", device=d, peer=1 - d) for d in (0, 1)] \
        if p.devices > 1 else []
    regions = [region(f"{first}_alone", a, end), region(f"{second}_alone", b, end),
               region("at_once", a, b, end)]
    if draw.chance(0.5):
        regions.append(region("the_other_order", b, a, end))
    p.thread(*access, *in_turn(p, *regions))
    return p


def triple(draw, gpus, number):
    """A host thread that works on memory beside what the GPU does."""
    kinds = draw.some(2, TWO_GPUS[:10] if gpus == 2 else ONE_GPU)
    p = Program("host_beside_gpu", f"The host's work beside {kinds[0]} and {kinds[1]}.".replace(
        "_", " "), gpus, gpus)
    target = draw.scale(600, 3000)
    a = work(draw, p, kinds[0], "one", target)
    b = work(draw, p, kinds[1], "two", target)
    host = draw.one(*HOST)
    c = host_work(draw, p, host, target)
    times = draw.whole(1, 3)
    p.thread(*in_turn(
        p, region(f"{kinds[0]}_and_{kinds[1]}", a, b, sync_device()),
        region(f"host_{host}", repeat(times, c), sync_device(), per=times),
        region("all_at_once", a, b, repeat(times, c), sync_device())))
    return p


VARIANTS = {1: [pair, pair, triple, pair, pair, triple, pair],
            2: [pair, pair, triple, pair, pair, pair, triple, pair, pair]}
