"""The requests of a scenario's traffic: the same in every implementation (scenarios/serving.md)."""

from __future__ import annotations

import csv
import dataclasses
import pathlib
import re

from random_numbers import ONE, SplitMix64

MOST_TOKENS = 1 << 27  # each has its number, or its time
ARRIVALS, PROMPTS, OUTPUTS = 0, 1, 2  # streams


@dataclasses.dataclass
class Arrival:
    at_ns: int | None  # None: when an earlier one has finished (closed loop)
    prompt: int
    output: int


def length(numbers, law):
    """Tokens: a normal law around the mean, at least 1. A spread of 0 draws nothing."""
    mean, ppm = law["mean"], law["spread_ppm"]
    if ppm == 0:
        return mean
    return max(1, mean + (mean * ppm * numbers.normal() // (1000000 * ONE)))


def gap(numbers, halves):
    """Of a gamma law with mean 1 and shape halves/2, with 32 binary places: exponentials, and for a half a squared normal."""
    total = sum(numbers.exponential() for _ in range(halves // 2))
    if halves % 2:
        normal = numbers.normal()
        total += (normal * normal >> 32) // 2
    return total * 2 // halves


def trace(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(line for line in file if not line.startswith("#"))]
    if not rows or rows[0] != ["arrival_us", "prompt", "output"]:
        raise ValueError(f"{path}: the first line must be arrival_us,prompt,output")
    arrivals = []
    for row in filter(None, rows[1:]):
        if len(row) != 3 or not all(re.fullmatch(" *[0-9]{1,15} *", cell) for cell in row) or int(row[1]) * int(row[2]) == 0:
            raise ValueError(f"{path}: no arrival with two lengths: {','.join(row)[:80]!r}")
        arrivals.append(Arrival(int(row[0]) * 1000, int(row[1]), int(row[2])))
    if not arrivals:
        raise ValueError(f"{path}: no request")
    if any(a.at_ns > b.at_ns for a, b in zip(arrivals, arrivals[1:])):
        raise ValueError(f"{path}: arrivals must not go back")
    return arrivals


def requests(traffic, folder="."):
    found = drawn(traffic, folder)
    for what, tokens in (("prompts", sum(a.prompt for a in found)), ("output", sum(a.output for a in found))):
        if tokens > MOST_TOKENS:
            raise ValueError(f"traffic: {tokens} tokens of {what}: more than {MOST_TOKENS} in all")
    return found


def drawn(traffic, folder):
    if traffic["arrivals"] == "trace":
        return trace(pathlib.Path(folder) / str(traffic["file"]))
    gaps, prompts, outputs = (SplitMix64(traffic["seed"], stream) for stream in (ARRIVALS, PROMPTS, OUTPUTS))
    found, at_ns = [], 0
    for number in range(traffic["requests"]):
        if traffic["arrivals"] == "closed":
            when = 0 if number < traffic["concurrency"] else None
        else:
            halves = 2 if traffic["arrivals"] == "poisson" else traffic["shape_halves"]
            at_ns += gap(gaps, halves) * traffic["mean_gap_ns"] >> 32
            when = at_ns
        found.append(Arrival(when, length(prompts, traffic["prompt"]), length(outputs, traffic["output"])))
    return found
