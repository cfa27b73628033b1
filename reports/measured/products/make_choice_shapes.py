#!/usr/bin/env python3
"""Prints products to ask cuBLAS about, for `foretrace-hw products LIST --choices-only`:

    make_choice_shapes.py 300000 > choice_shapes.csv

Sides are log-uniform, and multiples of something more often than not; a tenth are batches, a seventh
have few rows, some a vocabulary. The same key gives the same list, and a shorter list is the
beginning of a longer one. For --quick, which runs them, those that take no longer than so many ms on
a GPU of an H100's kind, and none of the choices' list:

    make_choice_shapes.py 120000 --most-ms 3 > quick_shapes.csv
"""
import argparse
import random

KEY = "what cuBLAS chooses"
MOST_FLOP = 4e14
MOST_BYTES = 60e9
LEAST_MS = 1e-3
TYPES = {"bfloat16": 42, "float16": 18, "float32": 28, "tf32": 6, "float64": 6}
TRANSPOSED = {"NN": 40, "TN": 30, "NT": 25, "TT": 5}
MULTIPLES = {1: 20, 2: 12, 4: 5, 8: 25, 16: 5, 32: 5, 64: 13, 128: 10, 256: 5}
RATES = {"bfloat16": 6e14, "float16": 6e14, "float32": 4e13, "tf32": 3e14, "float64": 4e13}
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


def milliseconds(dtype, flop, elements):
    """About what an H100 takes."""
    return 1e3 * max(flop / RATES[dtype], elements * BYTES[dtype] / 3e12)


def shapes(most_ms):
    draw = random.Random(KEY if most_ms is None else f"how long products take, {most_ms} ms at most")
    while True:
        batched = draw.random() < 0.1
        dtype, transposed = one_of(draw, TYPES), one_of(draw, TRANSPOSED)
        m, n, k = sides(draw, batched)
        batch = round(2 * 256 ** draw.random()) if batched else 1
        result = "float32" if BYTES[dtype] == 2 and draw.random() < 0.05 else dtype
        beta = int(draw.random() < 0.1)
        largest = max(m * n, m * k, n * k) * batch * 8
        flop = 2.0 * m * n * k * batch
        if flop > MOST_FLOP or largest > MOST_BYTES:
            continue
        if most_ms is not None:
            ms = milliseconds(dtype, flop, (m * n + m * k + n * k) * batch)
            if ms > most_ms or (ms < LEAST_MS and draw.random() < 0.75):  # mostly the start, all alike
                continue
        yield f"{m},{n},{k},{dtype},{result},{','.join(transposed)},{batch},{beta}"


def print_different(keys, count):
    """The first so many, each once."""
    print("m,n,k,type,c_type,transa,transb,batch,beta")
    known = set()
    for key in keys:
        if len(known) == count:
            return
        if key not in known:
            known.add(key)
            print(key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--most-ms", type=float)
    arguments = parser.parse_args()
    print_different(shapes(arguments.most_ms), arguments.count)


if __name__ == "__main__":
    main()
