"""Calls of PyTorch's operators over sizes, types and layouts: what a kernel table of a GPU is learned from.

A case is (name, make): make(device) returns a function without arguments that makes the call once. Tensors are made
with torch.empty and filled by normal_ where values matter. Sizes in elements; nothing here is a user's program.
"""

import itertools

import torch
import torch.nn.functional as F

HALF, SINGLE = torch.bfloat16, torch.float32
TYPES = {"bf16": HALF, "f16": torch.float16, "f32": SINGLE}


def tensor(device, *shape, dtype=HALF, grad=False):
    made = torch.empty(shape, device=device, dtype=dtype)
    if dtype.is_floating_point:
        made.normal_()
    else:
        made.zero_()
    return made.requires_grad_(grad)


def sizes(most, least=1 << 10, factor=4):
    while least <= most:
        yield least
        least *= factor


UNARY = {
    "neg": torch.neg, "exp": torch.exp, "rsqrt": torch.rsqrt, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "cos": torch.cos,
    "pow2": lambda a: a.pow(2), "pow3": lambda a: a.pow(3.0), "silu": F.silu, "gelu": F.gelu, "relu": F.relu, "abs": torch.abs,
    "gelu_tanh": lambda a: F.gelu(a, approximate="tanh"), "clone": torch.clone, "mul_scalar": lambda a: a * 0.5,
    "add_scalar": lambda a: a + 1.0, "mul_scalar_": lambda a: a.mul_(1.0), "fill_": lambda a: a.fill_(0.0),
    "zero_": lambda a: a.zero_(), "dropout": lambda a: F.dropout(a, 0.1), "ge": lambda a: a >= 0, "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt, "clamp": lambda a: a.clamp(-1, 1), "rsub": lambda a: 1.0 - a, "leaky_relu": F.leaky_relu,
    "hardswish": F.hardswish, "softplus": F.softplus, "to_other": lambda a: a.to(HALF if a.dtype == SINGLE else SINGLE),
    "normal_": lambda a: a.normal_(), "uniform_": lambda a: a.uniform_(), "empty_zeros": torch.zeros_like, "div_scalar": lambda a: a / 3.0,
}
BINARY = {
    "add": torch.add, "mul": torch.mul, "sub": torch.sub, "div": torch.div, "maximum": torch.maximum, "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b), "eq": torch.eq, "copy_": lambda a, b: a.copy_(b), "add_alpha": lambda a, b: torch.add(a, b, alpha=0.1),
    "silu_backward": torch.ops.aten.silu_backward, "gelu_backward": torch.ops.aten.gelu_backward,
    "tanh_backward": torch.ops.aten.tanh_backward, "sigmoid_backward": torch.ops.aten.sigmoid_backward,
    "threshold_backward": lambda a, b: torch.ops.aten.threshold_backward(a, b, 0),
    "where": lambda a, b: torch.where(a > 0, a, b), "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "masked_fill": lambda a, b: a.masked_fill(b > 0, 0.0), "addcmul": lambda a, b: torch.addcmul(a, a, b),
}


def pointwise():
    for (name, call), (kind, dtype) in itertools.product(UNARY.items(), TYPES.items()):
        if kind == "f16" and name not in ("neg", "gelu", "clone", "to_other", "mul_scalar"):
            continue
        for n in sizes(1 << 28 if kind != "f32" else 1 << 27):
            yield f"unary/{name}/{kind}/{n}", lambda device, call=call, n=n, dtype=dtype: _bound(call, tensor(device, n, dtype=dtype))
    for (name, call), (kind, dtype) in itertools.product(BINARY.items(), TYPES.items()):
        if kind == "f16" and name not in ("add", "mul"):
            continue
        for n in sizes(1 << 27):
            yield (f"binary/{name}/{kind}/{n}",
                   lambda device, call=call, n=n, dtype=dtype: _bound(call, tensor(device, n, dtype=dtype), tensor(device, n, dtype=dtype)))


def mixed_and_broadcast():
    for n, c in itertools.product((256, 2048, 8192, 32768), (256, 1024, 4096, 14336)):
        if n * c > 1 << 28:
            continue
        for kind, dtype in (("bf16", HALF), ("f32", SINGLE)):
            for name, shape in (("row", (c,)), ("column", (n, 1)), ("scalar", ())):
                for op, call in (("mul", torch.mul), ("add", torch.add), ("div", torch.div)):
                    yield (f"broadcast/{op}_{name}/{kind}/{n}x{c}", lambda device, call=call, n=n, c=c, s=shape, t=dtype:
                           _bound(call, tensor(device, n, c, dtype=t), tensor(device, *s, dtype=t)))
        for op, call in (("mul", torch.mul), ("add", torch.add)):
            yield f"mixed/{op}/{n}x{c}", lambda device, call=call, n=n, c=c: _bound(
                call, tensor(device, n, c), tensor(device, n, c, dtype=SINGLE))
            yield f"mixed/{op}_row/{n}x{c}", lambda device, call=call, n=n, c=c: _bound(
                call, tensor(device, n, c), tensor(device, c, dtype=SINGLE))
        yield f"mixed/accumulate/{n}x{c}", lambda device, n=n, c=c: _bound(
            lambda a, b: a.add_(b), tensor(device, n, c, dtype=SINGLE), tensor(device, n, c))


def views():
    """Transposed heads, halves of the last dimension, joins: rotary embeddings and attention as people write them."""
    for b, s, h, d in ((1, 512, 8, 64), (2, 2048, 16, 64), (2, 2048, 32, 64), (1, 4096, 32, 128), (8, 1024, 16, 64), (4, 4096, 32, 128), (8, 197, 12, 64)):
        at = f"{b}x{s}x{h}x{d}"
        for kind, dtype in (("bf16", HALF), ("f32", SINGLE)):
            def heads(device, b=b, s=s, h=h, d=d, t=dtype):
                return tensor(device, b, s, h, d, dtype=t).transpose(1, 2)
            yield f"views/contiguous/{kind}/{at}", lambda device, f=heads: _bound(lambda a: a.contiguous(), f(device))
            yield f"views/neg_half/{kind}/{at}", lambda device, f=heads, d=d: _bound(lambda a: -a[..., d // 2:], f(device))
            yield f"views/cat_halves/{kind}/{at}", lambda device, f=heads, d=d: _bound(
                lambda a: torch.cat((a[..., d // 2:], a[..., : d // 2]), -1), f(device))
            yield f"views/mul_table/{kind}/{at}", lambda device, f=heads, b=b, s=s, d=d, t=dtype: _bound(
                torch.mul, f(device), tensor(device, b, 1, s, d, dtype=t))
            yield f"views/add/{kind}/{at}", lambda device, f=heads: _bound(torch.add, f(device), f(device))
            yield f"views/repeat_heads/{kind}/{at}", lambda device, f=heads, b=b, s=s, h=h, d=d: _bound(
                lambda a: a[:, :, None].expand(b, h, 4, s, d).reshape(b, h * 4, s, d), f(device))
            yield f"views/square_transposed/{kind}/{at}", lambda device, f=heads: _bound(
                lambda a: a.transpose(2, 3).contiguous(), f(device))
    for n, c in itertools.product((512, 4096, 16384), (768, 4096, 11008)):
        for kind, dtype in (("bf16", HALF), ("f32", SINGLE)):
            yield f"views/transpose/{kind}/{n}x{c}", lambda device, n=n, c=c, t=dtype: _bound(
                lambda a: a.t().contiguous(), tensor(device, n, c, dtype=t))
            yield f"views/chunk/{kind}/{n}x{c}", lambda device, n=n, c=c, t=dtype: _bound(
                lambda a: a[:, c // 3: 2 * c // 3].contiguous(), tensor(device, n, c, dtype=t))
            yield f"views/cat/{kind}/{n}x{c}", lambda device, n=n, c=c, t=dtype: _bound(
                lambda a, b: torch.cat((a, b), 0), tensor(device, n, c, dtype=t), tensor(device, n, c, dtype=t))
            yield f"views/split_cat_backward/{kind}/{n}x{c}", lambda device, n=n, c=c, t=dtype: _bound(
                lambda a, b, e: torch.cat((a, b, e), 1), *(tensor(device, n, c, dtype=t) for _ in range(3)))


def _bound(call, *arguments):
    def run():
        with torch.no_grad():
            call(*arguments)
    return run
