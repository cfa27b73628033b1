"""Random choices of one program. The same key gives the same choices on every Python from 3.8 on:
only random.Random.random() is used, whose sequence Python promises to keep."""

import hashlib
import math
import random

KIB, MIB = 1024, 1024 * 1024

# Rough times of one H200, in us; they only size loops, so that a region takes a few milliseconds.
# No prediction is made here, and nothing of models/ is read: a round does not depend on the model.
FLOP_PER_US = {"bfloat16": 5.5e8, "float16": 5.5e8, "float32": 4.5e7}
BYTES_PER_US = {"memory": 3.5e6, "pinned": 5.0e4, "pageable": 1.0e4, "peer": 3.5e5, "nccl": 3.0e5}
ELEMENT = {"bfloat16": 2, "float16": 2, "float32": 4, "int32": 4, "int64": 8, "float64": 8, "int8": 1}


def seed_of(text):
    """The seed that a text stands for: the first 12 hexadecimal digits of its SHA-256."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


class Draw:
    """Choices that follow from a key (text)."""

    def __init__(self, key):
        self.rng = random.Random(seed_of(key))

    def whole(self, low, high):
        """An integer, low and high included."""
        return low + int(self.rng.random() * (high - low + 1))

    def one(self, *choices):
        return choices[self.whole(0, len(choices) - 1)]

    def some(self, count, choices):
        """`count` different ones, in random order."""
        left, picked = list(choices), []
        for _ in range(min(count, len(left))):
            picked.append(left.pop(self.whole(0, len(left) - 1)))
        return picked

    def chance(self, probability):
        return self.rng.random() < probability

    def scale(self, low, high):
        """Between low and high, each factor of two as likely as the next."""
        return low * math.exp(self.rng.random() * math.log(high / low))

    def size(self, low, high, unit=4):
        """Bytes, a multiple of `unit`: half of them powers of two, the others whatever comes."""
        bytes_ = self.scale(low, high)
        if self.chance(0.5):
            bytes_ = 2 ** round(math.log2(bytes_))
        bytes_ = int(min(max(bytes_, low), high))
        return max(unit, bytes_ // unit * unit)

    def width(self, low, high):
        """One side of a matrix: a multiple of 128, of 8, or odd."""
        value = self.scale(low, high)
        step = self.one(128, 128, 64, 8, 1)
        value = max(step, int(value) // step * step)
        return value + 1 if step == 1 and value % 2 == 0 else value

    def dtype(self):
        return self.one("bfloat16", "bfloat16", "float16", "float32")

    def time(self, low_us, high_us):
        """A duration as scenarios write it."""
        return f"{round(self.scale(low_us, high_us))}us"

    def times(self, each_us, low_us=300, high_us=5000, most=400):
        """How often to run what takes `each_us`, so that a region takes between low and high."""
        return max(1, min(most, round(self.scale(low_us, high_us) / max(each_us, 0.5))))


def product_us(m, n, k, dtype):
    return 2.0 * m * n * k / FLOP_PER_US[dtype] + 5


def move_us(bytes_, way):
    return bytes_ / BYTES_PER_US[way] + (20 if way == "nccl" else 5)
