"""Cases of products, attention, convolutions and optimizers, forward and backward."""

import itertools

import torch
import torch.nn.functional as F

from cases import HALF, SINGLE, _bound, tensor

TOKENS_AND_WIDTHS = ((512, 768, 3072), (2048, 1024, 4096), (4096, 2048, 8192), (4096, 4096, 11008), (8192, 768, 2304), (1576, 768, 3072), (6272, 384, 1536),
                     (1024, 1600, 6400), (16384, 512, 2048), (2048, 5120, 13824), (4096, 1024, 151936), (2048, 2560, 6912), (8192, 1536, 8960))


def products():
    for (n, c, f), (kind, dtype) in itertools.product(TOKENS_AND_WIDTHS, (("bf16", HALF), ("f16", torch.float16), ("f32", SINGLE))):
        if kind == "f16" and c > 2048 or kind == "f32" and n * c * f > 1 << 36:
            continue
        for bias in (False, True):
            def linear(device, n=n, c=c, f=f, t=dtype, bias=bias):
                x, w = tensor(device, n, c, dtype=t, grad=True), tensor(device, f, c, dtype=t, grad=True)
                b = tensor(device, f, dtype=t, grad=True) if bias else None
                g = tensor(device, n, f, dtype=t)

                def run():
                    torch.autograd.grad(F.linear(x, w, b), [v for v in (x, w, b) if v is not None], g)
                return run
            yield f"products/linear{'_bias' if bias else ''}/{kind}/{n}x{c}x{f}", linear
    for b, m, n, k in ((64, 128, 128, 64), (96, 197, 197, 64), (96, 197, 64, 197), (128, 512, 512, 64), (128, 512, 64, 512), (32, 2048, 2048, 128), (8, 512, 4096, 1024), (16, 1024, 1024, 1024), (512, 49, 49, 32), (512, 49, 32, 49)):
        for kind, dtype in (("bf16", HALF), ("f32", SINGLE)):
            yield f"products/bmm/{kind}/{b}x{m}x{n}x{k}", lambda device, b=b, m=m, n=n, k=k, t=dtype: _bound(
                torch.bmm, tensor(device, b, m, k, dtype=t), tensor(device, b, k, n, dtype=t))
            yield f"products/bmm_nt/{kind}/{b}x{m}x{n}x{k}", lambda device, b=b, m=m, n=n, k=k, t=dtype: _bound(
                torch.bmm, tensor(device, b, m, k, dtype=t), tensor(device, b, n, k, dtype=t).transpose(1, 2))


def attention():
    shapes = ((1, 8, 8, 512, 64), (2, 32, 32, 2048, 64), (2, 32, 8, 2048, 64), (8, 16, 16, 1024, 64), (1, 32, 8, 4096, 128), (4, 16, 8, 1024, 128), (8, 12, 12, 197, 64),
              (16, 12, 12, 512, 64), (2, 16, 16, 2048, 80), (2, 16, 16, 2048, 96), (1, 8, 4, 4096, 256), (1, 32, 32, 8192, 128), (4, 8, 8, 512, 32), (32, 6, 6, 577, 64))
    for (b, h, kv, s, d), causal, kind in itertools.product(shapes, (True, False), ("bf16", "f32")):
        if kind == "f32" and b * h * s > 1 << 17:
            continue
        for mask in (False, True):
            if mask and (causal or s > 4096):
                continue
            def run_case(device, b=b, h=h, kv=kv, s=s, d=d, causal=causal, t=HALF if kind == "bf16" else SINGLE, mask=mask):
                q = tensor(device, b, s, h, d, dtype=t).transpose(1, 2).requires_grad_()
                k, v = (tensor(device, b, s, kv, d, dtype=t).transpose(1, 2).requires_grad_() for _ in range(2))
                bias = torch.zeros(b, 1, s, s, device=device, dtype=t) if mask else None
                g = tensor(device, b, s, h, d, dtype=t).transpose(1, 2)

                def run():
                    y = F.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, enable_gqa=kv != h)
                    torch.autograd.grad(y, [q, k, v], g)
                return run
            yield f"attention/{kind}/{'causal' if causal else 'masked' if mask else 'full'}/{b}x{h}x{kv}x{s}x{d}", run_case


CONVOLUTIONS = (  # batch, channels in, out, size, kernel, stride, groups
    (64, 3, 64, 224, 7, 2, 1), (64, 64, 64, 56, 1, 1, 1), (64, 64, 64, 56, 3, 1, 1), (64, 64, 256, 56, 1, 1, 1), (64, 256, 128, 56, 1, 1, 1), (64, 128, 128, 56, 3, 2, 1),
    (64, 128, 512, 28, 1, 1, 1), (64, 256, 256, 14, 3, 1, 1), (64, 1024, 256, 14, 1, 1, 1), (64, 512, 512, 7, 3, 1, 1), (64, 512, 2048, 7, 1, 1, 1), (64, 256, 512, 56, 1, 2, 1),
    (32, 3, 768, 224, 16, 16, 1), (32, 3, 96, 224, 4, 4, 1), (32, 96, 96, 56, 7, 1, 96), (32, 384, 384, 14, 7, 1, 384), (32, 96, 96, 112, 3, 2, 96), (32, 240, 240, 28, 5, 1, 240),
    (16, 320, 320, 64, 3, 1, 1), (16, 640, 640, 32, 3, 1, 1), (32, 24, 144, 56, 1, 1, 1), (8, 64, 64, 128, 3, 1, 1), (128, 32, 32, 32, 3, 1, 1), (64, 512, 512, 28, 3, 1, 32))


def convolutions():
    for (n, c, o, s, k, stride, groups), (kind, dtype), form in itertools.product(
            CONVOLUTIONS, (("bf16", HALF), ("f16", torch.float16), ("f32", SINGLE)), (torch.contiguous_format, torch.channels_last)):
        if kind == "f16" and form == torch.contiguous_format:
            continue
        def convolve(device, n=n, c=c, o=o, s=s, k=k, stride=stride, groups=groups, t=dtype, form=form):
            x = tensor(device, n, c, s, s, dtype=t).to(memory_format=form).requires_grad_(c > 3)
            w = tensor(device, o, c // groups, k, k, dtype=t).to(memory_format=form).requires_grad_()
            y = F.conv2d(x, w, stride=stride, padding=k // 2 if stride < k else 0, groups=groups)
            g = torch.ones_like(y)

            def run():
                y = F.conv2d(x, w, stride=stride, padding=k // 2 if stride < k else 0, groups=groups)
                torch.autograd.grad(y, [x, w] if c > 3 else [w], g)
            return run
        yield f"convolution/{kind}/{'nhwc' if form == torch.channels_last else 'nchw'}/{n}x{c}x{o}x{s}x{k}x{stride}x{groups}", convolve


def optimizers():
    kinds = {"adamw": lambda p: torch.optim.AdamW(p, lr=1e-4), "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
             "adamw_plain": lambda p: torch.optim.AdamW(p, lr=1e-4, foreach=False), "sgd": lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.9),
             "adam": lambda p: torch.optim.Adam(p, lr=1e-4), "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-4), "sgd_plain": lambda p: torch.optim.SGD(p, lr=1e-4)}
    for (kind, make), (count, n), (name, dtype) in itertools.product(
            kinds.items(), ((10, 1 << 14), (30, 1 << 18), (60, 1 << 20), (30, 1 << 24)), (("bf16", HALF), ("f32", SINGLE))):
        def optimise(device, make=make, count=count, n=n, t=dtype):
            parameters = [tensor(device, n, dtype=t, grad=True) for _ in range(count)]
            for p in parameters:
                p.grad = torch.randn_like(p)  # zeros would make divisions slow
            optimizer = make(parameters)

            def run():
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
            return run
        yield f"optimizer/{kind}/{name}/{count}x{n}", optimise
