#!/usr/bin/env python3
"""Writes plain_shapes.csv beside itself: products as a `gemm` of a scenario has them, of any size.

Neither operand is transposed and nothing is batched. Three in five are float32, the others half
precision: without whole 16 bytes, or small. Sides are whole 128, 64, 8, even or odd.

Columns and rules are those of make_shapes.py; a third is held out (judge).
"""
import hashlib
import pathlib

from make_more_shapes import HIDDEN, side, unaligned
from make_shapes import COLUMNS, Random

MOST_FLOP = {"float32": 1.6e11, "bfloat16": 4e11, "float16": 4e11}


def sizes(rnd, order):
    kind = order % 6
    if kind in (0, 1):
        return (*(side(rnd, 300, 7000) for _ in "mnk"), "any")
    if kind == 2:
        few, many = side(rnd, 1, 256), side(rnd, 1500, 14000)
        return (*rnd.pick([(few, many), (many, few)]), side(rnd, 1000, 9000), "thin")
    if kind == 3:
        return side(rnd, 96, 1000), side(rnd, 96, 1000), side(rnd, 3000, 16000), "deep"
    if kind == 4:
        hidden = rnd.pick(HIDDEN)
        wide = rnd.pick([hidden, hidden * 3, hidden * 4, hidden * 8 // 3])
        tokens = rnd.pick([side(rnd, 200, 6000), rnd.pick([500, 512, 1000, 1024, 2048, 3000, 4096])])
        return (*rnd.pick([(tokens, wide, hidden), (tokens, hidden, wide), (hidden, wide, tokens)]), "layer")
    return (*(side(rnd, 64, 1500) for _ in "mnk"), "small")


def small(rnd):
    return 8 * rnd.log(4, 160), rnd.log(16, 1500), 8 * rnd.log(4, 160), "small; whole 16 bytes"


def shapes():
    rnd = Random(23.5)
    known = set()
    plan = ["float32", "float32", "bfloat16", "float32", "float16", "float32", "float32", "bfloat16", "float32", "small"]
    order = {name: 0 for name in plan}
    while len(known) < 300:
        dtype = plan[(len(known) + len(known) // len(plan)) % len(plan)]  # each shard gets all
        m, n, k, note = small(rnd) if dtype == "small" else sizes(rnd, order[dtype])
        whole = dtype == "small"
        order[dtype] += 1
        if whole:
            dtype = rnd.pick(["bfloat16", "float16"])
        elif dtype != "float32" and not unaligned(m, k, dtype):
            continue
        key = f"{m},{n},{k},{dtype},{dtype},N,N,1,0"
        if 2 * m * n * k > MOST_FLOP[dtype] or key in known:
            continue
        known.add(key)
        held_out = hashlib.sha256(key.encode()).digest()[0] % 3 == 0
        yield f"{key},plain,{'judge' if held_out else 'fit'},{note}"


def main():
    lines = list(shapes())
    path = pathlib.Path(__file__).with_name("plain_shapes.csv")
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    print(f"{len(lines)} products")


if __name__ == "__main__":
    main()
