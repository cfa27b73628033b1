#!/usr/bin/env python3
"""Writes odd_shapes.csv beside itself: half precision where kernels are hard to guess.

  tokens    few rows (1 to 700), mostly no whole 16 bytes, times the weight of a layer; its gradients
  sides     forward, backward and weight gradient of layers whose sides are odd, even, whole 8
  words     a vocabulary of any length, as a linear layer of PyTorch has it
  sixteen   a leading dimension of an odd number of 16 bytes
  few       whole 16 bytes and few tiles

Columns and rules are those of make_shapes.py; a third is held out (judge).
"""
from make_more_shapes import HIDDEN, side, unaligned
from make_shapes import shapes, write

MOST_FLOP = 2.5e11
WORDS = [50257, 50265, 32001, 30522, 49153, 51865]


def layer(rnd):
    """Inputs and outputs of a layer, either way."""
    hidden = rnd.pick([*HIDDEN, 8192])
    wide = rnd.pick([hidden, hidden * 2, hidden * 3, hidden * 4, hidden * 8 // 3 // 64 * 64])
    return rnd.pick([(hidden, wide), (wide, hidden)])


def tokens(rnd, dtype, order):
    count = rnd.pick([rnd.log(1, 64), rnd.log(8, 700), rnd.log(60, 700)])
    wide, hidden = layer(rnd)
    if order % 4 == 3:  # by the weight
        return (hidden, wide, count, dtype, dtype, "N", rnd.pick(["N", "N", "T"]), 1, 0, "weight of tokens")
    return (count, wide, hidden, dtype, dtype, "N", "N", 1, 0, "tokens")


def sides(rnd, dtype, order):
    sizes = side(rnd, 200, 3000), side(rnd, 500, 5000), side(rnd, 500, 5000)
    return (*sizes, dtype, dtype, "N", "N", 1, 0, "layer")


def words(rnd, dtype, order):
    count, hidden, known = rnd.log(16, 2048), rnd.pick([768, 1024, 2048]), rnd.pick(WORDS)
    sizes = [(known, count, hidden, dtype, dtype, "T", "N"), (hidden, count, known, dtype, dtype, "N", "N"),
             (hidden, known, count, dtype, dtype, "N", "T")]
    return (*sizes[order % 3], 1, 0, ["forward", "by the input", "by the weight"][order % 3])


def sixteen(rnd, dtype, order):
    first = 8 * (rnd.log(12, 250) | 1)
    second, third = (rnd.pick([128, 64, 8, 8]) for _ in "nk")
    second, third = (rnd.log(500, 5000) // step * step for step in (second, third))
    if order % 4 == 3:
        return (third, second, first, dtype, dtype, "N", "N", 1, 0, "k")
    return (first, second, third, dtype, dtype, "N", "N", 1, 0, "m")


def few(rnd, dtype, order):
    count = rnd.pick([rnd.pick([64, 128, 192, 256, 384, 512]), 16 * rnd.log(4, 32), 8 * rnd.log(8, 64)])
    wide, hidden = layer(rnd)
    if order % 4 == 3:
        return (wide, rnd.log(64, 512), hidden, dtype, dtype, "T", "N", 1, 0, "linear layer")
    return (count, wide, hidden, dtype, dtype, "N", "N", 1, 0, "tokens")


PLAN = [("bfloat16", tokens, 56), ("float16", tokens, 14), ("bfloat16", sides, 28), ("float16", sides, 7),
        ("bfloat16", words, 12), ("bfloat16", sixteen, 48), ("float16", sixteen, 12), ("bfloat16", few, 51),
        ("float16", few, 12)]


def is_left_out(family, shape):
    m, n, k, dtype, transa, transb, *_ = shape
    odd = unaligned(k if transa == "T" else m, n if transb == "T" else k, dtype) or unaligned(m, m, dtype)
    return 2 * m * n * k > MOST_FLOP or (family in (tokens, sides) and not odd)


if __name__ == "__main__":
    write("odd_shapes.csv", shapes(PLAN, 67.5, is_left_out))
