"""Batches from the host: prefetch streams, worker threads, pageable data sets."""

from draw import KIB, MIB, move_us
from families.common import Product, in_turn
from program import Program, op, region, repeat, sync, sync_device


def consume(draw, p, stream, x):
    """What computes on a batch: a few products, kernels over the batch, or a fixed time."""
    kind = draw.one("product", "kernels", "fixed")
    if kind == "product":
        y = Product(p, "layer", draw.width(500, 4000), draw.width(500, 4000), draw.width(500, 4000),
                    draw.dtype())
        return [op("elementwise", stream=stream, src=x, dst=x),
                repeat(draw.times(y.us, 100, 1200, 12), y.on(stream))]
    if kind == "kernels":
        return [repeat(draw.whole(4, 40), op("elementwise", stream=stream, src=x, dst=x))]
    return [op("spin", stream=stream, duration=draw.time(100, 1500), blocks=draw.one(16, 64, 132))]


def prefetch(draw, gpus, number):
    """Batch i + 1 crosses while batch i is computed; twice, from two kinds of memory."""
    processes = gpus
    p = Program("prefetch", "A stream copies the next batch while another computes.", gpus,
                processes)
    p.stream("copy"), p.stream("compute")
    p.event("copied", 2), p.event("consumed", 2)
    bytes_, batches = draw.size(512 * KIB, 32 * MIB), draw.whole(4, 14)
    memory = draw.one("pinned", "pinned", "pageable")
    batches = max(3, min(batches, int(6000 / move_us(bytes_, memory))))
    p.buffer("x", bytes_, count=2)
    work = consume(draw, p, "compute", "x(i % 2)")
    up = op("memcpy_async", stream="copy", src="host(i % 2)", dst="x(i % 2)")
    p.buffer("host", bytes_, memory, count=2)
    p.thread(*in_turn(
        p, region("prefetched",
                  repeat(batches, op("stream_wait_event", stream="copy", event="consumed(i % 2)"),
                         up, op("event_record", stream="copy", event="copied(i % 2)"),
                         op("stream_wait_event", stream="compute", event="copied(i % 2)"), *work,
                         op("event_record", stream="compute", event="consumed(i % 2)"), index="i"),
                  sync_device()),
        region("one_after_the_other",
               repeat(batches, up, sync("copy"), *work, sync("compute"), index="i"), sync_device()),
        region("copies_only", repeat(batches, up, index="i"), sync_device())))
    return p


def workers(draw, gpus, number):
    """Worker threads prepare batches in pinned memory, the main thread copies and computes."""
    count, gpu_two = draw.whole(2, 4), gpus == 2
    p = Program("workers", f"{count} worker threads prepare batches for "
                f"{'two GPUs' if gpu_two else 'the GPU'}.", gpus)
    rounds = draw.whole(2, 4)
    batches, bytes_ = count * rounds, draw.size(64 * KIB, 8 * MIB)
    p.stream("work", each="device" if gpu_two else None)
    p.event("copied", count)
    p.signal("ready", count), p.signal("empty", count)
    p.buffer("batch", bytes_, "pinned", count=count)
    p.buffer("x", bytes_, count=count)
    if gpu_two:
        p.buffer("x_other", bytes_, count=count, device=1)
    fills = draw.chance(0.4) and bytes_ <= MIB
    prepare = (lambda i: op("host_fill", dst=f"batch({i})")) if fills else \
        (lambda i, t=draw.time(100, 1200): op("host_compute", duration=t))
    s, m = ("work(0)" if gpu_two else "work"), f"(i % {count})"
    spin = lambda stream, t=draw.time(50, 600): op("spin", stream=stream, duration=t, blocks=64)
    use = [op("memcpy_async", stream=s, src="batch" + m, dst="x" + m), spin(s)]
    if gpu_two:
        use += [op("memcpy_async", stream="work(1)", src="batch" + m, dst="x_other" + m),
                spin("work(1)"), sync("work(1)")]
    use += [op("event_record", stream=s, event="copied" + m)]
    ends = [sync_device(d) for d in range(gpus)]
    p.thread(
        region("prepared_in_the_way",
               repeat(rounds, op("event_synchronize", event="copied(i)"), prepare("i"),
                      *({k: {kk: vv.replace(m, "(i)") if isinstance(vv, str) else vv
                             for kk, vv in v.items()} for k, v in one.items()} for one in use),
                      index="i") if rounds <= count else
               repeat(count, prepare("i"), *use, op("event_synchronize", event="copied" + m),
                      index="i"), *ends),
        op("host_barrier", name="start"),
        region("with_workers",
               repeat(batches, op("host_wait", signal="ready" + m), *use,
                      op("event_synchronize", event="copied" + m),
                      op("host_signal", signal="empty" + m), index="i"), *ends),
        op("host_barrier", name="stop"),
        region("without_preparing",
               repeat(batches, *use, op("event_synchronize", event="copied" + m), index="i"),
               *ends))
    for w in range(count):
        p.thread(op("host_barrier", name="start"),
                 repeat(rounds, prepare(w), op("host_signal", signal=f"ready({w})"),
                        op("host_wait", signal=f"empty({w})")),
                 op("host_barrier", name="stop"), name=f"worker_{w}")
    return p


def read_back(draw, gpus, number):
    """Evaluation: batches go up, results come down to pageable memory and are read."""
    p = Program("evaluation", "Batches are copied, computed, and their results read by the host.",
                gpus, gpus)
    p.stream("s")
    bytes_, batches = draw.size(256 * KIB, 16 * MIB), draw.whole(3, 10)
    out = draw.size(256, 512 * KIB)
    p.buffer("data", bytes_, draw.one("pageable", "pinned")), p.buffer("x", bytes_)
    p.buffer("y", max(out, 4 * KIB)), p.buffer("result", out, "pageable")
    work = consume(draw, p, "s", "x")
    up = op("memcpy_async", stream="s", src="data", dst="x")
    down = op("memcpy_async", stream="s", src="y", dst="result", size=f"{out}B")
    score = op("host_compute", duration=draw.time(20, 300))
    metric = op("reduction", stream="s", src="x", dst="y", type="float32")
    p.thread(*in_turn(
        p, region("batches", repeat(batches, up, *work, metric, down, sync("s"), score),
                  per=batches),
        region("scalars", repeat(batches, up, *work, metric,
                                 op("read_scalar", src="y", stream="s"), score)),
        region("results_at_the_end", repeat(batches, up, *work, metric), down, sync("s"))))
    return p


VARIANTS = {1: [prefetch, workers, read_back, prefetch, workers, read_back],
            2: [prefetch, workers, read_back, prefetch]}
