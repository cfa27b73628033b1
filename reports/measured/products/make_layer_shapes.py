#!/usr/bin/env python3
"""Prints the products of layers by few and many tokens, for `foretrace-hw products LIST --quick --rotate`:

    make_layer_shapes.py 20000 > layer_shapes.csv

Weights of 0.2 to 400 MB, in every order that frameworks use: y = x W^T (T, N), its input's gradient
(N, N), its weights' (N, T), and row by row (N, N with few rows of m). The same key gives the same
list, and a shorter list is the beginning of a longer one.
"""
import argparse
import random

from make_choice_shapes import BYTES, one_of, print_different, side

KEY = "layers with weights that no cache has"
TYPES = {"bfloat16": 60, "float16": 25, "float32": 15}
MULTIPLES = {1: 6, 2: 6, 8: 18, 64: 40, 128: 20, 256: 10}
MOST_FLOP = 6e11


def shapes():
    draw = random.Random(KEY)
    while True:
        dtype = one_of(draw, TYPES)
        outputs = side(draw, 256, 32768, one_of(draw, MULTIPLES))
        inputs = side(draw, 256, 20000, one_of(draw, MULTIPLES))
        tokens = round(2 ** (12.5 * draw.random()))
        weights = outputs * inputs * BYTES[dtype]
        if not 2e5 < weights < 4e8 or 2 * tokens * outputs * inputs > MOST_FLOP / (10 if dtype == "float32" else 1):
            continue
        m, n, k, order = draw.choice(((outputs, tokens, inputs, "T,N"), (inputs, tokens, outputs, "N,N"),
                                      (inputs, outputs, tokens, "N,T"), (tokens, outputs, inputs, "N,N"),
                                      (tokens, outputs, inputs, "N,N")))
        yield f"{m},{n},{k},{dtype},{dtype},{order},1,0"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    print_different(shapes(), parser.parse_args().count)


if __name__ == "__main__":
    main()
