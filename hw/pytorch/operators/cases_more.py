"""Cases that programs of others showed to be missing: depthwise convolutions, batch norms in single precision, attention in single precision with
masks and dropout, partial rotary embeddings, norms of gradients, adds of mixed types."""

import itertools

import torch
import torch.nn.functional as F

from cases import HALF, SINGLE, _bound, tensor

DEPTHWISE = ((64, 32, 112, 3, 1), (64, 96, 112, 3, 2), (64, 144, 56, 3, 1), (64, 144, 56, 5, 2), (64, 240, 28, 5, 1), (64, 480, 14, 3, 1), (64, 672, 14, 5, 1), (64, 1152, 7, 5, 1),
             (64, 1152, 7, 3, 1), (64, 256, 28, 3, 2), (64, 512, 14, 3, 1), (64, 960, 14, 3, 1), (64, 1536, 7, 3, 1), (32, 96, 56, 7, 1), (32, 768, 7, 7, 1))
GROUPED = (  # channels, size, channels of a group, stride: regnets and resnexts
    (224, 28, 56, 1), (448, 28, 56, 1), (896, 14, 112, 1), (2016, 7, 168, 1), (256, 56, 32, 1), (512, 28, 32, 1), (1024, 14, 32, 1), (128, 56, 4, 1), (256, 28, 8, 1), (512, 14, 16, 1),
    (72, 56, 24, 1), (216, 28, 24, 1), (576, 14, 24, 1), (1512, 7, 24, 1), (224, 56, 56, 1), (896, 14, 56, 1), (2016, 7, 56, 1), (72, 112, 24, 2), (216, 56, 24, 2), (576, 28, 24, 2),
    (224, 112, 56, 2), (448, 56, 56, 2), (896, 28, 56, 2), (2016, 14, 56, 2), (256, 56, 8, 2), (512, 28, 16, 2))


def convolutions():
    every = [(n, c, s, c, k, stride) for n, c, s, k, stride in DEPTHWISE] + [(64, c, s, c // width, 3, stride) for c, s, width, stride in GROUPED]
    for (n, c, s, groups, k, stride), (kind, dtype), form, batch in itertools.product(
            every, (("bf16", HALF), ("f32", SINGLE)), (torch.contiguous_format, torch.channels_last), (8, 32, 128)):
        if batch * c * s * s > 1 << 28:
            continue

        def convolve(device, n=batch, c=c, s=s, groups=groups, k=k, stride=stride, t=dtype, form=form):
            x = tensor(device, n, c, s, s, dtype=t).to(memory_format=form).requires_grad_()
            w = tensor(device, c, c // groups, k, k, dtype=t).to(memory_format=form).requires_grad_()
            g = torch.ones_like(F.conv2d(x, w, stride=stride, padding=k // 2, groups=groups))

            def run():
                torch.autograd.grad(F.conv2d(x, w, stride=stride, padding=k // 2, groups=groups), [x, w], g)
            return run
        yield f"more/convolution/{kind}/{'nhwc' if form == torch.channels_last else 'nchw'}/{batch}x{c}x{s}x{k}x{stride}x{groups}", convolve


def batch_norms():
    for n, (c, s), (kind, dtype), form in itertools.product(
            (8, 32, 128), ((24, 112), (64, 112), (96, 56), (256, 56), (144, 28), (512, 28), (960, 14), (1024, 14), (1536, 7), (2048, 7)), (("bf16", HALF), ("f32", SINGLE)),
            (torch.contiguous_format, torch.channels_last)):
        if n * c * s * s > 1 << 27:
            continue

        def norm(device, n=n, c=c, s=s, t=dtype, form=form):
            x = tensor(device, n, c, s, s, dtype=t).to(memory_format=form).requires_grad_()
            layer = torch.nn.BatchNorm2d(c, device=device).train()
            g = torch.ones_like(x)

            def run():
                torch.autograd.grad(layer(x), [x, layer.weight, layer.bias], g)
            return run
        yield f"more/batch_norm/{kind}/{'nhwc' if form == torch.channels_last else 'nchw'}/{n}x{c}x{s}", norm


def attention():
    shapes = ((8, 32, 256, 64), (64, 12, 257, 64), (1, 32, 2048, 64), (2, 32, 1024, 64), (8, 12, 512, 64), (16, 12, 128, 64), (16, 8, 64, 64), (4, 16, 384, 64), (2, 32, 1024, 128), (8, 16, 512, 96),
              (4, 16, 512, 32), (1, 16, 4096, 64), (32, 12, 50, 64), (4, 24, 1024, 64))
    for (b, h, s, d), what, (kind, dtype) in itertools.product(shapes, ("full", "causal", "mask", "wide_mask", "dropout", "causal_dropout"), (("f32", SINGLE), ("bf16", HALF))):
        def attend(device, b=b, h=h, s=s, d=d, what=what, t=dtype):
            q, k, v = (tensor(device, b, s, h, d, dtype=t).transpose(1, 2).requires_grad_() for _ in range(3))
            mask = {"mask": (b, 1, s, s), "wide_mask": (b, h, s, s)}.get(what)
            bias = torch.zeros(mask, device=device, dtype=t) if mask else None
            g = tensor(device, b, s, h, d, dtype=t).transpose(1, 2)

            def run():
                y = F.scaled_dot_product_attention(q, k, v, bias, dropout_p=0.1 if "dropout" in what else 0.0, is_causal="causal" in what)
                torch.autograd.grad(y, [q, k, v], g)
            return run
        yield f"more/attention/{kind}/{what}/{b}x{h}x{s}x{d}", attend


def attention_across():
    """Queries and keys of different numbers: decoding with a cache, an encoder's output."""
    shapes = ((1, 16, 1, 128, 64), (4, 16, 1, 512, 64), (8, 32, 1, 1024, 128), (1, 32, 1, 4096, 128), (8, 12, 1, 256, 64), (2, 32, 1, 2048, 80), (16, 16, 1, 1024, 64), (4, 8, 1, 640, 256),
              (16, 8, 256, 64, 64), (8, 12, 128, 512, 64), (4, 16, 64, 1024, 64), (8, 16, 512, 128, 64), (2, 8, 4096, 77, 40), (8, 16, 256, 256, 96))
    for (b, h, s, keys, d), what, (kind, dtype) in itertools.product(shapes, ("full", "mask", "dropout"), (("f32", SINGLE), ("bf16", HALF))):
        def attend(device, b=b, h=h, s=s, keys=keys, d=d, what=what, t=dtype):
            q = tensor(device, b, s, h, d, dtype=t).transpose(1, 2).requires_grad_()
            k, v = (tensor(device, b, keys, h, d, dtype=t).transpose(1, 2).requires_grad_() for _ in range(2))
            bias = torch.zeros((b, 1, s, keys), device=device, dtype=t) if what == "mask" else None
            g = tensor(device, b, s, h, d, dtype=t).transpose(1, 2)

            def run():
                with torch.set_grad_enabled(s > 1):
                    y = F.scaled_dot_product_attention(q, k, v, bias, dropout_p=0.1 if what == "dropout" else 0.0)
                if s > 1:
                    torch.autograd.grad(y, [q, k, v], g)
            return run
        yield f"more/attention_across/{kind}/{what}/{b}x{h}x{s}x{keys}x{d}", attend


def dropouts():
    """Dropout with its backward, on rows and on scores; paths that are dropped whole."""
    for shape, (kind, dtype) in itertools.product(
            ((512, 768), (2048, 768), (4096, 1024), (8192, 768), (8192, 4096), (16384, 2048), (8, 12, 128, 128), (4, 12, 512, 512), (16, 16, 256, 256), (2, 16, 1024, 1024), (4, 8, 1024, 1024), (32, 1000)),
            (("bf16", HALF), ("f32", SINGLE))):
        def drop(device, shape=shape, t=dtype):
            x, g = tensor(device, *shape, dtype=t, grad=True), tensor(device, *shape, dtype=t)
            return lambda: torch.autograd.grad(F.dropout(x, 0.1), [x], g)

        def path(device, shape=shape, t=dtype):
            x, g = tensor(device, *shape, dtype=t, grad=True), tensor(device, *shape, dtype=t)

            def run():
                keep = x.new_empty((shape[0],) + (1,) * (len(shape) - 1)).bernoulli_(0.9).div_(0.9)
                torch.autograd.grad(x * keep, [x], g)
            return run
        at = "x".join(map(str, shape))
        yield f"more/dropout/{kind}/{at}", drop
        yield f"more/drop_path/{kind}/{at}", path


def joins():
    """torch.cat along each dimension: a class token, channels, states, lists of many; its backward is copies of parts."""
    lists = (((8, 1, 768), (8, 196, 768), 1), ((64, 1, 768), (64, 196, 768), 1), ((32, 1, 1024), (32, 256, 1024), 1), ((4, 512, 64), (4, 512, 64), 2), ((2, 2048, 1024), (2, 2048, 1024), 2),
             ((64, 58, 28, 28), (64, 58, 28, 28), 1), ((32, 116, 14, 14), (32, 116, 14, 14), 1), ((32, 232, 7, 7), (32, 232, 7, 7), 1), ((32, 256, 28, 28), (32, 32, 28, 28), 1),
             ((8, 512, 14, 14), (8, 32, 14, 14), 1), ((1, 128), (1, 1), 1), ((8, 640), (8, 1), 1), ((1024,), (1024,), 0), ((1 << 20,), (1 << 20,), 0))
    for (one, other, axis), (kind, dtype), form in itertools.product(lists, (("bf16", HALF), ("f32", SINGLE)), ("packed", "nhwc")):
        if form == "nhwc" and len(one) != 4:
            continue
        for count in (1, 4):
            def join(device, one=one, other=other, axis=axis, t=dtype, form=form, count=count):
                every = [tensor(device, *shape, dtype=t) for shape in (one, *[other] * count)]
                if form == "nhwc":
                    every = [a.to(memory_format=torch.channels_last) for a in every]
                return _bound(lambda *parts: torch.cat(parts, axis), *every)
            yield f"more/cat/{kind}/{form}/{'x'.join(map(str, one))}_{'x'.join(map(str, other))}_{axis}_{count}", join


def rotary():
    """Heads of which a part is turned, as gpt_neox and phi do, at the sizes of training and of decoding."""
    for (b, h, s, d), part, (kind, dtype) in itertools.product(
            ((1, 16, 1, 64), (4, 16, 1, 64), (8, 32, 1, 256), (1, 16, 128, 64), (2, 32, 2048, 64), (4, 16, 512, 256), (4, 32, 1024, 80), (8, 16, 1024, 64)), (0.25, 0.4, 0.5), (("bf16", HALF), ("f32", SINGLE))):
        turned = int(d * part) // 2 * 2

        def cut(device, b=b, h=h, s=s, d=d, t=dtype, turned=turned):
            x = tensor(device, b, s, h, 3 * d, dtype=t).transpose(1, 2)[..., :d]
            table = tensor(device, b, 1, s, turned, dtype=t)

            def run():
                with torch.no_grad():
                    a, rest = x[..., :turned], x[..., turned:]
                    half = torch.cat((-a[..., turned // 2:], a[..., :turned // 2]), -1)
                    torch.cat((a * table + half * table, rest), -1)
            return run
        yield f"more/rotary/{kind}/{b}x{h}x{s}x{d}_{turned}", cut


def gradients():
    """Norms and clips over many parameters; a cache that grows by a token."""
    for n, (kind, dtype) in itertools.product((1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26), (("bf16", HALF), ("f32", SINGLE))):
        for width in (0, 768, 4096):
            if width and width * 4 > n:
                continue
            shape = (n // width, width) if width else (n,)
            for name, call in (("norm", lambda a: torch.linalg.vector_norm(a, 2)), ("mean", torch.mean), ("sum", torch.sum), ("mul", lambda a: a.mul_(0.999)), ("isfinite", lambda a: torch.isfinite(a).all())):
                yield f"more/{name}/{kind}/{n}x{width}", lambda device, call=call, shape=shape, t=dtype: _bound(call, tensor(device, *shape, dtype=t))
    for (b, h, s, d), (kind, dtype) in itertools.product(((1, 16, 128, 64), (4, 16, 512, 64), (8, 32, 256, 128), (4, 8, 1024, 128), (2, 32, 2048, 80), (8, 16, 64, 256)), (("bf16", HALF), ("f32", SINGLE))):
        yield f"more/cache/{kind}/{b}x{h}x{s}x{d}", lambda device, b=b, h=h, s=s, d=d, t=dtype: _bound(
            lambda a, e: torch.cat((a, e), -2), tensor(device, b, h, s, d, dtype=t), tensor(device, b, h, 1, d, dtype=t))


def mixed():
    """Adds of scores and masks, residuals in another type."""
    for (b, h, s), (left, right) in itertools.product(((2, 32, 512), (2, 32, 2048), (8, 12, 512), (1, 16, 1024), (4, 16, 256)), itertools.product((HALF, SINGLE), repeat=2)):
        for name, shape in (("mask", (b, 1, s, s)), ("all", (b, h, s, s)), ("rows", (1, h, 1, s))):
            kind = f"{'bf16' if left == HALF else 'f32'}_{'bf16' if right == HALF else 'f32'}"
            for op, call in (("add", torch.add), ("add_", lambda a, e: a.add_(e)), ("mul", torch.mul)):
                yield f"more/{op}_{name}/{kind}/{b}x{h}x{s}", lambda device, b=b, h=h, s=s, call=call, shape=shape, one=left, other=right: _bound(
                    call, tensor(device, b, h, s, s, dtype=one), tensor(device, *shape, dtype=other))


FAMILIES = (convolutions, batch_norms, attention, attention_across, dropouts, joins, rotary, gradients, mixed)
