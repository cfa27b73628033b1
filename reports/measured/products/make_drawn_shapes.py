#!/usr/bin/env python3
"""Writes drawn_shapes.csv beside itself: products as the blind rounds' generator draws them.

Its own key, so that no round has these programs. Rows of a program are neighbours: one layer for
several tokens, a network's forward and backward products. `family` is the kind of program; of each
kind there are as many as SHARES says. Columns and rules are those of make_shapes.py; a third is
held out (judge).
"""
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "hw/laboratory/blind"))

from draw import Draw, product_us  # noqa: E402
from families import priorities, products, training  # noqa: E402
from make_shapes import COLUMNS  # noqa: E402

KEY = "drawn shapes of products"
MOST_US = 1500
SHARES = {"shapes": 125, "types": 15, "tokens": 45, "decoder": 65, "network": 60, "busy": 30}


def gemms(value):
    """Every gemm of a program's text, in its order."""
    if isinstance(value, dict):
        if "gemm" in value:
            yield value["gemm"]
        for part in value.values():
            yield from gemms(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from gemms(part)


def programs(kind):
    make = {"shapes": products.shapes, "types": products.types, "tokens": products.tokens,
            "decoder": training.decoder, "network": training.network,
            "busy": priorities.overtaking}[kind]
    number = 0
    while True:
        # Every other program of `overtaking` is busy with something else than products.
        at = 2 * number if kind == "busy" else number
        yield make(Draw(f"{KEY}/{kind}/{number}"), 1, at)
        number += 1


def shapes(kind, known):
    found = 0
    for program in programs(kind):
        for gemm in gemms([ops for _, ops in program.threads.values()]):
            m, n, k, dtype = (gemm[key] for key in ("m", "n", "k", "type"))
            key = f"{m},{n},{k},{dtype},{dtype},N,N,1,0"
            if key in known or product_us(m, n, k, dtype) > MOST_US:
                continue
            known.add(key)
            held_out = hashlib.sha256(key.encode()).digest()[0] % 3 == 0
            yield f"{key},{kind},{'judge' if held_out else 'fit'},drawn"
            found += 1
            if found == SHARES[kind]:
                return


def main():
    known = set()
    lines = [line for kind in SHARES for line in shapes(kind, known)]
    lines.sort(key=lambda line: hashlib.sha256(line.encode()).digest())  # a run may be cut off
    path = pathlib.Path(__file__).with_name("drawn_shapes.csv")
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    print(f"{len(lines)} products")


if __name__ == "__main__":
    main()
