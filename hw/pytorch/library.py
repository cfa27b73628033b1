"""`library_kernel`: what PyTorch's libraries do in a training step, by kind and size.

A scenario says what is computed and moved and names no tensors, so their shapes are chosen here: rows of 4,096 elements for
norms, of 32,000 for softmax, tables of 32,000 rows; attention is causal with as many heads for keys as for queries, and its
sequence is what its flops and bytes say. A kernel's bytes are those of its operands and results, as in the scenario."""

import torch

from program import ProgramError

HALF, FLOAT = torch.bfloat16, torch.float32
ROW, VOCABULARY, NARROW = 4096, 32000, 128
aten = torch.ops.aten


class Shapes:
    """Tensors of one device, made once for each use: what they hold does not matter."""

    def __init__(self, device):
        self.device, self.made = device, {}

    def __call__(self, name, *shape, element=HALF):
        key = (name, shape, element)
        if key not in self.made:
            self.made[key] = torch.empty(shape, dtype=element, device=self.device).normal_()
        return self.made[key]

    def indices(self, count):
        key = ("indices", count)
        if key not in self.made:
            self.made[key] = torch.randint(0, VOCABULARY, (count,), device=self.device)
        return self.made[key]


def _rows(size, bytes_per_element, row=ROW):
    """[rows, row] of so many bytes altogether; one short row where that is less than one."""
    count = max(1, size // bytes_per_element)
    return (max(1, count // row), min(row, count))


def _three(new, size, element=HALF):
    shape = _rows(size, 3 * element.itemsize)
    return new("x", *shape, element=element), new("y", *shape, element=element), new("z", *shape, element=element)


def _pointwise(new, size):
    x, y, z = _three(new, size)
    return lambda: torch.add(x, y, out=z)


def _cast(source, target):
    def make(new, size):
        shape = _rows(size, source.itemsize + target.itemsize)
        x, y = new("cast", *shape, element=source), new("cast_to", *shape, element=target)
        return lambda: y.copy_(x)
    return make


def _mixed(new, size):
    shape = _rows(size, 2 * FLOAT.itemsize + HALF.itemsize)
    x, y = new("sum", *shape, element=FLOAT), new("x", *shape)
    return lambda: x.add_(y)


def _halves(new, size, operands):
    rows = max(1, size // (operands * HALF.itemsize * (NARROW // 2)))
    return [new(name, rows, NARROW) for name in ("x", "y", "z")[:operands]], NARROW // 2


def _strided(new, size):
    (x, y, z), half = _halves(new, size, 3)
    return lambda: torch.mul(x[:, half:], y[:, :half], out=z[:, :half])


def _concatenate(new, size):
    rows = max(1, size // (2 * HALF.itemsize * NARROW))
    x, z, half = new("x", rows, NARROW), new("z", rows, NARROW), NARROW // 2
    return lambda: torch.cat((x[:, half:], x[:, :half]), -1, out=z)


def _norm(kind):
    rms, direction = kind.startswith("rms"), kind.split("_")[-1]

    def make(new, size):
        operands = {"norm": 2, "backward": 3, "weights": 2}[direction]
        rows, row = _rows(size, operands * HALF.itemsize)
        x, dy, weight = new("x", rows, row), new("y", rows, row), new("weight", row)
        if direction == "norm":
            if rms:
                return lambda: aten._fused_rms_norm(x, [row], weight, 1e-5)
            return lambda: aten.native_layer_norm(x, [row], weight, weight, 1e-5)
        mask = [direction == "backward"] + [direction == "weights"] * (1 if rms else 2)
        mean, rstd = new("mean", rows, 1, element=FLOAT), new("rstd", rows, 1, element=FLOAT)
        if rms:
            return lambda: aten._fused_rms_norm_backward(dy, x, [row], rstd, weight, mask)
        return lambda: aten.native_layer_norm_backward(dy, x, [row], mean, rstd, weight, weight, mask)
    return make


def _column_sum(new, size):
    shape = _rows(size, HALF.itemsize)
    x, total = new("x", *shape), new("total", shape[1])
    return lambda: torch.sum(x, 0, out=total)


def _softmax(new, size):
    shape = _rows(size, 2 * FLOAT.itemsize, VOCABULARY)
    x, y = new("logits", *shape, element=FLOAT), new("softmax", *shape, element=FLOAT)
    return lambda: aten._log_softmax.out(x, 1, False, out=y)


def _softmax_backward(new, size):
    shape = _rows(size, 3 * FLOAT.itemsize, VOCABULARY)
    dy, y, dx = (new(name, *shape, element=FLOAT) for name in ("logits", "softmax", "softmax_gradient"))
    return lambda: aten._log_softmax_backward_data.out(dy, y, 1, FLOAT, out=dx)


def _gather(new, size):
    rows, row = _rows(size, 2 * HALF.itemsize)
    table, indices, out = new("table", VOCABULARY, row), new.indices(rows), new("z", rows, row)
    return lambda: torch.index_select(table, 0, indices, out=out)


def _gather_backward(new, size):
    rows, row = _rows(size, 2 * HALF.itemsize)
    dy, indices = new("x", rows, row), new.indices(rows)
    return lambda: aten.embedding_dense_backward(dy, indices, VOCABULARY, -1, False)


def _optimizer(element):
    def make(new, size):
        tensor = 1 << 22  # elements of one parameter
        left, parameters = max(1, size // (7 * element.itemsize)), []
        while left > 0:
            parameters.append(min(tensor, left))
            left -= parameters[-1]
        lists = [[new((name, number), count, element=element) for number, count in enumerate(parameters)]
                 for name in ("parameter", "gradient", "mean", "square")]
        for one in lists[3]:
            one.abs_()
        steps = [torch.ones((), dtype=FLOAT, device=new.device) for _ in parameters]
        return lambda: torch._fused_adamw_(*lists, [], steps, lr=1e-9, beta1=0.9, beta2=0.95, weight_decay=0.1, eps=1e-8,
                                           amsgrad=False, maximize=False)
    return make


def _shard_copy(new, size):
    rows = max(8, size // (2 * HALF.itemsize * ROW))
    into, out = new("x", rows, ROW), new("z", rows, ROW)
    cuts = [len(part) for part in torch.arange(rows).tensor_split(8)]
    parts = list(out.split(cuts))
    return lambda: torch.split_with_sizes_copy(into, cuts, 0, out=parts)


def _attention(backward):
    def make(new, size, flops, width):
        # As the expansion counts them (scenarios/training_step/attention.cc), for each head: 2 S (S + 192) D flops and
        # 8 S D bytes forward, 5 S (S + 256) D and 16 S D backward.
        sequence = max(1, round(flops / size * (3.2 if backward else 4)) - (256 if backward else 192))
        heads = max(1, round(size / ((16 if backward else 8) * sequence * width)))
        q, k, v, dy = (new(name, 1, heads, sequence, width) for name in ("q", "k", "v", "dy"))
        attend = torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(q, k, v, is_causal=True)
        leaves = [one.detach().requires_grad_() for one in (q, k, v)]
        with torch.enable_grad():
            y = attend(*leaves, is_causal=True)
        return lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)
    return make


_KINDS = {"pointwise": _pointwise, "captured": _pointwise, "narrow": _cast(FLOAT, HALF), "widen": _cast(HALF, FLOAT), "mixed": _mixed,
          "strided": _strided, "concatenate": _concatenate, "column_sum": _column_sum, "softmax": _softmax,
          "softmax_backward": _softmax_backward, "gather": _gather, "gather_backward": _gather_backward,
          "optimizer": _optimizer(FLOAT), "optimizer_half": _optimizer(HALF), "shard_copy": _shard_copy}
_KINDS |= {kind: _norm(kind) for kind in ("layer_norm", "layer_norm_backward", "layer_norm_weights", "rms_norm",
                                          "rms_norm_backward", "rms_norm_weights")}


def library_kernel(new, call):
    """A function that queues the kernel on the current stream."""
    size = max(1, call.bytes)
    if call.kernel in ("attention_forward", "attention_backward"):
        return _attention(call.kernel.endswith("backward"))(new, size, call.flops, int(call.width) or 128)
    if call.kernel not in _KINDS:
        raise ProgramError(f"PyTorch's executor knows no {call.kernel!r}")
    return _KINDS[call.kernel](new, size)
