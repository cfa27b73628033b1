#!/usr/bin/env python3
"""Prints products to ask cuBLAS about, for `foretrace-hw products LIST --choices-only`:

    make_choice_shapes.py 300000 > choice_shapes.csv

Sides are log-uniform, and multiples of something more often than not; a tenth are batches, a seventh
have few rows, some a vocabulary. The same key gives the same list, and a shorter list is the
beginning of a longer one.
"""
import random
import sys

KEY = "what cuBLAS chooses"
MOST_FLOP = 4e14
MOST_BYTES = 60e9
TYPES = {"bfloat16": 42, "float16": 18, "float32": 28, "tf32": 6, "float64": 6}
TRANSPOSED = {"NN": 40, "TN": 30, "NT": 25, "TT": 5}
MULTIPLES = {1: 20, 2: 12, 4: 5, 8: 25, 16: 5, 32: 5, 64: 13, 128: 10, 256: 5}
BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "tf32": 4, "float64": 8}


def one_of(draw, weights):
    return draw.choices(list(weights), list(weights.values()))[0]


def side(draw, least, most, multiple):
    value = least * (most / least) ** draw.random()
    return max(1, round(value / multiple)) * multiple


def sides(draw, batched):
    """m, n and k."""
    multiple = one_of(draw, MULTIPLES)
    multiples = [multiple if draw.random() < 0.75 else one_of(draw, MULTIPLES) for _ in range(3)]
    most = 4096 if batched else 32768
    result = [side(draw, 16, most, by) for by in multiples]
    kind = draw.random()
    if kind < 0.15:  # few rows: tokens, images
        result[draw.choice((0, 1))] = draw.randint(1, 64)
    elif kind < 0.19 and not batched:
        result[0] = side(draw, 30000, 160000, multiples[0])
    elif kind < 0.24:
        result[2] = draw.randint(1, 64)
    return result


def shapes(count):
    draw = random.Random(KEY)
    known = set()
    while len(known) < count:
        batched = draw.random() < 0.1
        dtype, transposed = one_of(draw, TYPES), one_of(draw, TRANSPOSED)
        m, n, k = sides(draw, batched)
        batch = round(2 * 256 ** draw.random()) if batched else 1
        result = "float32" if BYTES[dtype] == 2 and draw.random() < 0.05 else dtype
        beta = int(draw.random() < 0.1)
        largest = max(m * n, m * k, n * k) * batch * 8
        if 2.0 * m * n * k * batch > MOST_FLOP or largest > MOST_BYTES:
            continue
        key = f"{m},{n},{k},{dtype},{result},{','.join(transposed)},{batch},{beta}"
        if key not in known:
            known.add(key)
            yield key


def main():
    print("m,n,k,type,c_type,transa,transb,batch,beta")
    for key in shapes(int(sys.argv[1])):
        print(key)


if __name__ == "__main__":
    main()
