#!/usr/bin/env python3
"""Writes more_shapes.csv beside itself: what shapes.csv has too little of.

  packed   neither operand transposed, leading dimensions of no whole 16 bytes or float32, as a `gemm`
           of a scenario: layers for any number of tokens, decoded tokens, sides of any length
  small    half precision with whole 16 bytes that takes some microseconds
  batch    strided batches of 2 to 512 matrices, of even and odd sides, in every type

Columns and rules are those of make_shapes.py; a third is held out (judge).
"""
from make_shapes import BYTES, LARGEST_FLOP, shapes, write

HIDDEN = [768, 1024, 1280, 1536, 1600, 2048, 2560, 3072, 4096, 5120]


def side(rnd, low, high):
    """A multiple of 128, of 64, of 8, of 2, or odd."""
    step = rnd.pick([128, 64, 8, 2, 1, 1])
    value = max(step, rnd.log(low, high) // step * step)
    return value | 1 if step == 1 else value


def packed(rnd, dtype, order):
    kind = order % 5
    hidden = rnd.pick(HIDDEN)
    wide = rnd.pick([hidden * 2, hidden * 3, hidden * 4, hidden * 8 // 3])
    if kind == 0:  # tokens of a layer
        tokens = rnd.pick([rnd.log(1, 64), rnd.log(16, 512), rnd.log(256, 4096)])
        sizes = (tokens, *rnd.pick([(wide, hidden), (hidden, wide)]))
    elif kind == 1:  # decoding
        sizes = (rnd.log(1, 33), *rnd.pick([(3 * hidden, hidden), (hidden, hidden), (wide, hidden), (hidden, wide)]))
    elif kind == 2:
        sizes = tuple(side(rnd, 300, 5000) for _ in "mnk")
    elif kind == 3:  # few rows or columns, or a long k
        sizes = rnd.pick([(side(rnd, 1, 200), side(rnd, 1000, 8000), side(rnd, 1500, 9000)),
                          (side(rnd, 1000, 8000), side(rnd, 1, 200), side(rnd, 1500, 9000)),
                          (side(rnd, 128, 900), side(rnd, 128, 900), side(rnd, 6000, 16000))])
    else:  # small
        sizes = tuple(side(rnd, 64, 640) for _ in "mnk")
    return (*sizes, dtype, dtype, "N", "N", 1, 0, ["tokens", "decoding", "any", "thin", "small"][kind])


def small(rnd, dtype, order):
    m, k = (8 * rnd.log(4, 96) for _ in "mk")
    return (m, rnd.log(16, 768), k, dtype, dtype, "N", "N", 1, 0, "small; whole 16 bytes")


def batch(rnd, dtype, order):
    count = rnd.log(2, 512)
    m, n, k = (side(rnd, 16, 1024) for _ in "mnk")
    if order % 3 == 0:  # attention: scores, values
        length, width = side(rnd, 64, 2048), rnd.pick([32, 64, 72, 80, 96, 128])
        m, n, k = rnd.pick([(length, length, width), (width, length, length)])
    transa, transb = rnd.pick([("N", "N"), ("T", "N"), ("N", "T")])
    return (m, n, k, dtype, dtype, transa, transb, count, 0, "batch")


def unaligned(m, k, dtype):
    return m * BYTES[dtype] % 16 != 0 or k * BYTES[dtype] % 16 != 0


PLAN = [("bfloat16", packed, 100), ("float16", packed, 36), ("float32", packed, 40), ("bfloat16", small, 20),
        ("bfloat16", batch, 36), ("float16", batch, 12), ("float32", batch, 14), ("tf32", batch, 8),
        ("float64", batch, 8)]


def is_left_out(family, shape):
    m, n, k, dtype, _, _, _, count, _ = shape
    too_large = 8 * m * n * k * count > LARGEST_FLOP[dtype] or m * n * count * BYTES[dtype] > 2**30
    return too_large or (family is packed and dtype != "float32" and not unaligned(m, k, dtype))


if __name__ == "__main__":
    write("more_shapes.csv", shapes(PLAN, 11.5, is_left_out))
