"""Cases that go along rows or gather them: reductions, softmax, norms, losses, embeddings, sorting, scans."""

import itertools

import torch
import torch.nn.functional as F

from cases import HALF, SINGLE, _bound, tensor

ROWS = ((256, 1024), (1024, 768), (4096, 1024), (4096, 4096), (2048, 2048), (8192, 768), (16384, 2048), (32768, 1024), (8192, 8192), (12544, 256), (65536, 64), (512, 50257), (2048, 32000), (4096, 128256))
TYPES = (("bf16", HALF), ("f32", SINGLE))


def reductions():
    calls = {
        "sum_rows": lambda a: a.sum(-1), "mean_rows": lambda a: a.mean(-1, keepdim=True), "sum_columns": lambda a: a.sum(0),
        "amax_rows": lambda a: a.amax(-1), "sum_all": lambda a: a.sum(), "mean_all": lambda a: a.mean(), "var_rows": lambda a: a.var(-1),
        "argmax": lambda a: a.argmax(-1), "cumsum": lambda a: a.cumsum(-1), "sum_columns_f32": lambda a: a.sum(0, dtype=SINGLE),
        "norm": lambda a: torch.linalg.vector_norm(a), "isfinite_all": lambda a: torch.isfinite(a).all(), "max_all": lambda a: a.max(),
        "softmax": lambda a: torch.softmax(a, -1), "log_softmax": lambda a: torch.log_softmax(a, -1),
        "softmax_f32": lambda a: torch.softmax(a, -1, dtype=SINGLE),
    }
    for (n, c), (name, call), (kind, dtype) in itertools.product(ROWS, calls.items(), TYPES):
        yield f"rows/{name}/{kind}/{n}x{c}", lambda device, n=n, c=c, call=call, t=dtype: _bound(call, tensor(device, n, c, dtype=t))
    for (n, c), (kind, dtype) in itertools.product(ROWS, TYPES):
        for name, call in (("softmax_backward", lambda g, y: torch.ops.aten._softmax_backward_data(g, y, -1, y.dtype)),
                           ("log_softmax_backward", lambda g, y: torch.ops.aten._log_softmax_backward_data(g, y, -1, y.dtype))):
            yield f"rows/{name}/{kind}/{n}x{c}", lambda device, n=n, c=c, call=call, t=dtype: _bound(
                call, tensor(device, n, c, dtype=t), tensor(device, n, c, dtype=t))


def norms():
    for (n, c), (kind, dtype) in itertools.product([r for r in ROWS if r[1] <= 8192], TYPES):
        for name, weight in (("layer_norm", True), ("rms_norm", False)):
            def both(device, n=n, c=c, t=dtype, layer=weight):
                x, g = tensor(device, n, c, dtype=t, grad=True), tensor(device, n, c, dtype=t)
                w = tensor(device, c, dtype=t, grad=True)
                b = tensor(device, c, dtype=t, grad=True) if layer else None

                def run():
                    y = F.layer_norm(x, (c,), w, b) if layer else F.rms_norm(x, (c,), w)
                    torch.autograd.grad(y, [v for v in (x, w, b) if v is not None], g)
                return run
            yield f"norms/{name}/{kind}/{n}x{c}", both
    for (n, c, s), (kind, dtype) in itertools.product(((32, 64, 112), (64, 64, 56), (64, 256, 56), (64, 512, 28), (64, 1024, 14), (64, 2048, 7), (16, 128, 64)), TYPES):
        for form in (torch.contiguous_format, torch.channels_last):
            for name in ("batch_norm", "group_norm", "relu", "max_pool", "avg_pool", "adaptive_pool", "upsample", "add"):
                def image(device, n=n, c=c, s=s, t=dtype, form=form, name=name):
                    x = tensor(device, n, c, s, s, dtype=t).to(memory_format=form).requires_grad_()
                    w, b = (tensor(device, c, dtype=SINGLE if name == "batch_norm" else t, grad=True) for _ in range(2))
                    mean, var = torch.zeros(c, device=device), torch.ones(c, device=device)
                    calls = {"batch_norm": lambda: F.batch_norm(x, mean, var, w, b, True), "group_norm": lambda: F.group_norm(x, 32, w, b),
                             "relu": lambda: F.relu(x), "max_pool": lambda: F.max_pool2d(x, 3, 2, 1), "avg_pool": lambda: F.avg_pool2d(x, 2),
                             "adaptive_pool": lambda: F.adaptive_avg_pool2d(x, 1), "upsample": lambda: F.interpolate(x, scale_factor=2.0),
                             "add": lambda: x + x}
                    g = torch.ones_like(calls[name]())

                    def run():
                        y = calls[name]()
                        torch.autograd.grad(y, [x] + ([w, b] if name.endswith("norm") else []), g)
                    return run
                yield f"images/{name}/{kind}/{'nhwc' if form == torch.channels_last else 'nchw'}/{n}x{c}x{s}", image


def losses_and_rows():
    for n, v in ((512, 50257), (2048, 32000), (4096, 128256), (8192, 50257), (1024, 1000), (16384, 32128)):
        for kind, dtype in TYPES:
            if n * v > 1 << 29:
                continue
            def loss(device, n=n, v=v, t=dtype):
                x = tensor(device, n, v, dtype=t, grad=True)
                target = torch.randint(0, v, (n,), device=device)

                def run():
                    torch.autograd.grad(F.cross_entropy(x, target), [x])
                return run
            yield f"loss/cross_entropy/{kind}/{n}x{v}", loss
    for n, v, c in ((512, 50257, 768), (2048, 32000, 2048), (8192, 50257, 1024), (16384, 128256, 4096), (4096, 151936, 1024), (32768, 30522, 768), (8192, 1024, 768)):
        for kind, dtype in TYPES:
            def embed(device, n=n, v=v, c=c, t=dtype):
                w, g = tensor(device, v, c, dtype=t, grad=True), tensor(device, n, c, dtype=t)
                index = torch.randint(0, v, (n,), device=device)

                def run():
                    torch.autograd.grad(F.embedding(index, w), [w], g)
                return run
            yield f"rows/embedding/{kind}/{n}x{v}x{c}", embed
            def select(device, n=n, v=v, c=c, t=dtype):
                w, g = tensor(device, v, c, dtype=t, grad=True), tensor(device, n, c, dtype=t)
                index = torch.randint(0, v, (n,), device=device)

                def run():
                    torch.autograd.grad(w[index], [w], g)
                    with torch.no_grad():
                        torch.index_select(w, 0, index)
                        torch.zeros_like(w).index_add_(0, index, g)
                        torch.gather(w, 0, index[:, None].expand(n, c))
                return run
            yield f"rows/index/{kind}/{n}x{v}x{c}", select
    for n, c, k in ((4096, 8, 2), (4096, 64, 8), (16384, 128, 8), (1024, 50257, 50), (8, 128256, 50)):
        for kind, dtype in TYPES:
            yield f"rows/topk/{kind}/{n}x{c}x{k}", lambda device, n=n, c=c, k=k, t=dtype: _bound(
                lambda a: torch.topk(a, k, -1), tensor(device, n, c, dtype=t))
            yield f"rows/sort/{kind}/{n}x{c}", lambda device, n=n, c=c, t=dtype: _bound(
                lambda a: torch.sort(a, -1), tensor(device, n, c, dtype=t))
    for n in (1024, 16384, 262144, 4194304):
        def integers(device, n=n):
            a = torch.randint(0, 64, (n,), device=device)

            def run():
                torch.arange(n, device=device)
                torch.ones(n, device=device, dtype=torch.long)
                a.argsort()
                torch.bincount(a, minlength=64)
                torch.cumsum(a, 0)
                torch.nonzero(a)
                F.one_hot(a, 64)
                a.to(SINGLE)
                (a != 3).all()
                a + 1
            return run
        yield f"integers/{n}", integers
    for s in (128, 512, 1024, 4096):
        def masks(device, s=s):
            def run():
                m = torch.full((s, s), float("-inf"), device=device, dtype=HALF)
                torch.triu(m, diagonal=1)
                torch.ones(s, s, device=device, dtype=torch.bool).tril()
                (torch.arange(s, device=device)[None, :] > torch.arange(s, device=device)[:, None])
            return run
        yield f"masks/{s}", masks
