"""Steps of training and inference on one GPU."""

from draw import ELEMENT, KIB, move_us
from families.common import Product, elementwise_us, in_turn, loop
from program import Program, op, region, repeat, sync, sync_device


def layers(draw, p, dtype):
    """Layers of a network: forward and backward operations, and what one pass of each takes."""
    batch, sides = draw.width(200, 3000), [draw.width(500, 5000) for _ in range(draw.whole(3, 5))]
    element, forward, backward, us = ELEMENT[dtype], [], [], 0
    acts = [p.buffer(f"act{i}", batch * side * element) for i, side in enumerate(sides)]
    grads = [p.buffer(f"dact{i}", batch * side * element) for i, side in enumerate(sides)]
    activation = draw.chance(0.8)
    for i, (k, n) in enumerate(zip(sides, sides[1:])):
        w = p.buffer(f"w{i}", k * n * element)
        dw = p.buffer(f"dw{i}", k * n * element)
        out = Product(p, f"f{i}", batch, n, k, dtype, acts[i], w, acts[i + 1])
        dx = Product(p, f"b{i}", batch, k, n, dtype, grads[i + 1], w, grads[i])
        dweight = Product(p, f"g{i}", k, n, batch, dtype, acts[i], grads[i + 1], dw)
        relu = op("elementwise", src=acts[i + 1], dst=acts[i + 1], type=dtype)
        forward += [out.on()] + ([relu] if activation else [])
        masked = op("elementwise", srcs=[grads[i + 1], acts[i + 1]], dst=grads[i + 1], type=dtype)
        backward = ([masked] if activation else []) + [dweight.on(), dx.on()] + backward
        us += out.us + dx.us + dweight.us + 3 * elementwise_us(batch * n * element, 2)
    # The update goes elsewhere: weights that grow with every pass would end as infinities.
    update = [op("elementwise", srcs=[f"w{i}", f"dw{i}"], type=dtype,
                 dst=p.buffer(f"new_w{i}", p.bytes[f"w{i}"])) for i in range(len(sides) - 1)]
    return forward, backward, update, us


def network(draw, gpus, number):
    p = Program("training_step", "Forward, backward and update of a small network.")
    dtype = draw.one("bfloat16", "bfloat16", "float32")
    forward, backward, update, us = layers(draw, p, dtype)
    loss = p.buffer("loss", 4 * KIB)
    reads = draw.chance(0.5)
    tail = [op("read_scalar", src=loss)] if reads else [sync_device()]
    last = len([name for name in p.sections["buffers"] if name.startswith("act")]) - 1
    step = forward + [op("reduction", src=f"act{last}", dst=loss, type=dtype)] + backward + update
    times = draw.times(us, 600, 7000, 20)
    p.thread(*in_turn(
        p, loop("forward_pass", us / 3, draw, *forward, most=30),
        loop("backward_pass", us * 2 / 3, draw, *backward, most=30),
        loop("update", 15, draw, *update, most=60),
        region("steps", repeat(times, *step, *tail), sync_device(), per=times)))
    return p


def accumulation(draw, gpus, number):
    """Micro-batches from the host, gradients added up, one update."""
    p = Program("micro_batches", "Micro-batches are copied, computed and added up, then one update.")
    dtype = draw.one("bfloat16", "bfloat16", "float32")
    forward, backward, update, us = layers(draw, p, dtype)
    total = p.buffer("total", draw.size(1 << 20, 1 << 26), contents="zeros")
    fresh = p.buffer("fresh", p.bytes[total])
    host = p.buffer("batch", p.bytes["act0"], memory=draw.one("pinned", "pinned", "pageable"))
    load = op("memcpy_async", stream="default", src=host, dst="act0")
    add = op("elementwise", srcs=[total, fresh], dst=total, type="float32")
    micro = draw.whole(2, 5)
    p.thread(*in_turn(
        p, region("one_micro_batch", load, *forward, *backward, sync_device()),
        region("accumulated", repeat(micro, load, *forward, *backward, add), *update,
               sync_device()),
        loop("without_loading", us + 20, draw, *forward, *backward, add, most=10)))
    return p


def decoder(draw, gpus, number):
    """Inference: a prompt, then token after token, each read by the host."""
    p = Program("decoder", "A prompt goes through some layers, then tokens one by one.")
    dtype = draw.one("bfloat16", "bfloat16", "float16")
    hidden, depth = draw.one(1024, 2048, 2560, 4096), draw.whole(2, 6)
    wide = hidden * draw.one(2, 3, 4)
    regions, one = [], p.buffer("token", 4 * KIB)
    for name, count in (("prompt", draw.width(200, 3000)), ("tokens", draw.whole(1, 64))):
        qkv = Product(p, f"{name}_qkv", count, 3 * hidden, hidden, dtype)
        out = Product(p, f"{name}_out", count, hidden, hidden, dtype)
        up = Product(p, f"{name}_up", count, wide, hidden, dtype, a=out.names["c"])
        down = Product(p, f"{name}_down", count, hidden, wide, dtype, a=up.names["c"])
        norm = op("elementwise", srcs=[out.names["c"], out.names["a"]], type=dtype,
                  dst=p.buffer(f"{name}_residual", count * hidden * 2))
        gelu = op("elementwise", src=up.names["c"], dst=up.names["c"], type=dtype)
        ops = [norm, qkv.on(), out.on(), norm, up.on(), gelu, down.on()]
        us = depth * (qkv.us + out.us + up.us + down.us + 12)
        read = op("read_scalar", src=one) if draw.chance(0.7) else sync()
        regions.append(loop(name, us, draw, repeat(depth, *ops), read, high_us=6000, most=30,
                            per=True))
        regions.append(loop(f"{name}_without_reading", us, draw, repeat(depth, *ops),
                            high_us=6000, most=30))
    p.thread(*in_turn(p, *regions))
    return p


VARIANTS = [network, decoder, network, accumulation, network, decoder, accumulation, network]
