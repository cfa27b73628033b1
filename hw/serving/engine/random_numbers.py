"""Random numbers in whole numbers only, so that every implementation draws the same: scenarios/serving.md has the formulas."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
LN2_64 = 0xB17217F7D1CF79AB  # ln 2 * 2^64, rounded down
ONE = 1 << 32  # 1 of a number with 32 binary places


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class SplitMix64:
    """Stream `stream` of a seed."""

    def __init__(self, seed, stream=0):
        self.state = mix((seed * 16 + stream + 1) * GOLDEN & MASK)

    def next(self):
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def exponential(self):
        """-ln(x / 2^64) of the next number x, with 32 binary places; x = 0 counts as 1."""
        return (64 * ONE - log2(self.next() or 1)) * LN2_64 >> 64

    def normal(self):
        """The sum of twelve numbers in [0, 1), less 6, with 32 binary places."""
        return sum(self.next() >> 32 for _ in range(12)) - 6 * ONE


def log2(x):
    """Of x >= 1, with 32 binary places, by squaring."""
    whole = x.bit_length() - 1
    x <<= 63 - whole  # in [2^63, 2^64)
    result = whole
    for _ in range(32):
        x = x * x >> 63
        result <<= 1
        if x >> 64:
            result |= 1
            x >>= 1
    return result
