#!/usr/bin/env python3
"""Writes fresh_shapes.csv beside itself: bfloat16 products of 25 us and longer that no list here has.

All are held out (judge): they were written down, with the model of that commit, before any was
measured. Layers of models by tokens forward and backward, any multiples of 8, and any numbers.
"""
import csv
import pathlib
import random

from make_shapes import COLUMNS as NAMES

COLUMNS = NAMES.split(",")
HERE = pathlib.Path(__file__).parent
WANTED = 160
PEAK = 700e12  # FLOP/s: only to leave out what is too short or too long
HIDDEN = [2304, 2560, 2816, 3328, 3584, 4608, 5120, 6144, 6656, 7168, 9216, 10240, 12288]
TOKENS = [512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288]


def layer(draw, transposes):
    hidden = draw.choice(HIDDEN)
    outputs = draw.choice([hidden, hidden // 2, hidden * 4, int(hidden * 8 / 3) // 128 * 128,
                           3 * hidden // 4, 32000, 25152])
    sides = [outputs, draw.choice(TOKENS), hidden]
    return draw.sample(sides, 3) if transposes == "NT" else sides


def any_sides(draw, multiple):
    return [max(64, round(2 ** draw.uniform(8, 13.5) / multiple) * multiple) for _ in range(3)]


def main():
    known = {tuple(row[c] for c in COLUMNS[:9])
             for path in HERE.glob("*shapes.csv") if path.name != "fresh_shapes.csv"
             for row in csv.DictReader(path.open())}
    draw = random.Random("fresh shapes of products")
    rows = []
    while len(rows) < WANTED:
        family = draw.choice(["training", "training", "random", "odd"])
        transposes = draw.choice(["TN", "NN", "NT"])
        if family == "training":
            m, n, k = layer(draw, transposes)
        else:
            m, n, k = any_sides(draw, 8 if family == "random" else 1)
        key = (str(m), str(n), str(k), "bfloat16", "bfloat16", *transposes, "1", "0")
        if not 25e-6 < 2 * m * n * k / PEAK < 3e-3 or key in known:
            continue
        known.add(key)
        rows.append([*key, family, "judge", "fresh"])
    with (HERE / "fresh_shapes.csv").open("w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
