"""What families share: products with their matrices, kernels, and regions one after the other."""

from draw import ELEMENT, move_us, product_us
from program import op, region, repeat, sync_device, sync_devices


class Product:
    """c = a * b with matrices of its own, named after it."""

    def __init__(self, program, name, m, n, k, dtype, a=None, b=None, c=None, **where):
        element = ELEMENT[dtype]
        self.keys = dict(m=m, n=n, k=k, type=dtype)
        self.names = {}
        for side, given, count in (("a", a, m * k), ("b", b, k * n), ("c", c, m * n)):
            self.names[side] = given or program.buffer(f"{name}_{side}", count * element, **where)
        self.us = product_us(m, n, k, dtype)

    def on(self, stream=None, member="", **keys):
        names = {side: name + member for side, name in self.names.items()}
        return op("gemm", **keys, stream=stream, **self.keys, **names)


def elementwise_us(bytes_, sources=1):
    return move_us(bytes_ * (sources + 1), "memory")


def loop(name, each_us, draw, *ops, low_us=300, high_us=5000, most=400, end=None, per=None):
    """A region that repeats `ops` for a few milliseconds and then waits."""
    times = draw.times(each_us, low_us, high_us, most)
    per = draw.chance(0.4) if per is None else per
    body = list(ops) if times == 1 else [repeat(times, *ops)]
    return region(name, *body, end or sync_device(), per=times if per else None)


def in_turn(program, *regions):
    """Every region begins on idle GPUs, in all processes at once."""
    ops = []
    for one in regions:
        if program.processes > 1:
            ops += [sync_device(), op("host_barrier")]
        elif program.devices > 1 and not ops:
            ops += [sync_devices()]
        ops.append(one)
    return ops
