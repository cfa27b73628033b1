#!/usr/bin/env python3
"""Prints products in float64, for `foretrace-hw products LIST --quick`:

    make_float64_shapes.py > float64_shapes.csv

Squares of 64 to 8,192 in three orders, and others drawn: sides of 16 to 8,000, two of five whole
multiples of 32, three of ten of 8; one of seven small ones in a batch.
"""
import hashlib
import math
import random

KEY = b"foretrace float64 products"
SQUARES = (64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1000, 1024, 1280, 1500, 1536, 1792, 2000, 2048,
           2500, 2560, 3000, 3072, 3584, 4000, 4096, 5000, 6144, 8192)
COUNT = 1500
MOST_MULTIPLICATIONS = 2e11
MOST_BYTES = 6e9


def side(draw):
    size = int(math.exp(draw.uniform(math.log(16), math.log(8000))))
    kind = draw.random()
    if kind < 0.4:
        return max(8, size // 32 * 32)
    return max(8, size // 8 * 8) if kind < 0.7 else size


def rows():
    draw = random.Random(int(hashlib.sha256(KEY).hexdigest()[:12], 16))
    found = [(s, s, s, *order, 1, "square") for s in SQUARES for order in ("NN", "TN", "NT")]
    while len(found) < COUNT:
        m, n, k = side(draw), side(draw), side(draw)
        if m * n * k > MOST_MULTIPLICATIONS or (m * n + m * k + n * k) * 8 > MOST_BYTES:
            continue
        order = draw.choice(("NN", "TN", "NT", "TT"))
        alone = draw.random() < 0.85 or m * n * k > 1e9
        found.append((m, n, k, *order, 1 if alone else draw.choice((4, 16, 64)), "drawn"))
    return found


def main():
    print("m,n,k,type,c_type,transa,transb,batch,beta,family,part,note")
    for m, n, k, ta, tb, batch, note in rows():
        print(f"{m},{n},{k},float64,float64,{ta},{tb},{batch},0,float64,fit,{note}")


if __name__ == "__main__":
    main()
