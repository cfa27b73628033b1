"""Matrix products alone: shapes of layers, tall and thin, odd, of several types."""

from draw import product_us
from families.common import Product, in_turn, loop
from program import Program


def shape(draw, kind):
    if kind == "square":
        side = draw.width(700, 6000)
        return side, side, side
    if kind == "thin":
        sides = [draw.width(1, 200), draw.width(2000, 14000), draw.width(1500, 9000)]
        return tuple(draw.some(2, sides[:2])) + (sides[2],)
    if kind == "deep":
        return draw.width(128, 900), draw.width(128, 900), draw.width(8000, 16000)
    if kind == "layer":
        hidden = draw.one(768, 1024, 1280, 1600, 2048, 2560, 3072, 4096, 5120)
        wide = hidden * draw.one(3, 4) if draw.chance(0.6) else hidden * 8 // 3
        tokens = draw.one(512, 1000, 2048, 3001, 4096, 6000)
        return draw.one((tokens, wide, hidden), (tokens, hidden, wide), (hidden, wide, tokens))
    return draw.width(300, 7000), draw.width(300, 7000), draw.width(300, 7000)


def bounded(draw, kind, dtype, most_us=2500):
    """A shape whose product takes at most so long; draws again until it does."""
    while True:
        m, n, k = shape(draw, kind)
        if product_us(m, n, k, dtype) <= most_us:
            return m, n, k


def shapes(draw, gpus, number):
    kind = ("any", "layer", "thin", "square", "deep", "any")[number % 6]
    p = Program("products", f"Matrix products, {'of any shape' if kind == 'any' else kind}, one "
                "after the other.")
    regions = []
    for i in range(draw.whole(3, 5)):
        dtype = draw.dtype()
        m, n, k = bounded(draw, kind, dtype)
        x = Product(p, f"p{i}", m, n, k, dtype)
        regions.append(loop(f"product_{m}_{n}_{k}_{dtype}_{i}", x.us, draw, x.on(), low_us=500,
                            high_us=9000, most=60))
    p.thread(*in_turn(p, *regions))
    return p


def types(draw, gpus, number):
    p = Program("one_shape_three_types", "One shape in three types.")
    m, n, k = bounded(draw, draw.one("any", "layer", "square"), "float32")
    regions = []
    for dtype in draw.some(3, ["bfloat16", "float16", "float32"]):
        x = Product(p, dtype, m, n, k, dtype)
        regions.append(loop(f"in_{dtype}", x.us, draw, x.on(), high_us=8000, most=60))
    p.thread(*in_turn(p, *regions))
    return p


def tokens(draw, gpus, number):
    """A layer for more and more tokens, as when prompts of different lengths come in."""
    p = Program("tokens_of_a_layer", "The products of one layer for a growing number of tokens.")
    dtype = draw.one("bfloat16", "bfloat16", "float16")
    hidden = draw.one(1024, 1536, 2048, 2560, 4096)
    wide = hidden * draw.one(2, 3, 4)
    regions = []
    for count in sorted(draw.some(4, [1, 7, 16, 64, 120, 256, 500, 1024, 2000, 4096])):
        up = Product(p, f"up{count}", count, wide, hidden, dtype)
        down = Product(p, f"down{count}", count, hidden, wide, dtype, a=up.names["c"])
        regions.append(loop(f"layer_{count}_tokens", up.us + down.us, draw, up.on(), down.on(),
                            low_us=500, high_us=6000, most=60))
    p.thread(*in_turn(p, *regions))
    return p


VARIANTS = [shapes, types, shapes, tokens, shapes, shapes, shapes, tokens, shapes, types]
