"""The requests of a scenario's traffic: the same in every implementation (scenarios/serving.md)."""

from __future__ import annotations

import csv
import dataclasses
import pathlib

from random_numbers import ONE, SplitMix64

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
    arrivals = [Arrival(int(at) * 1000, int(prompt), int(output)) for at, prompt, output in rows[1:]]
    if any(a.at_ns > b.at_ns for a, b in zip(arrivals, arrivals[1:])):
        raise ValueError(f"{path}: arrivals must not go back")
    return arrivals


def requests(traffic, folder="."):
    if traffic["arrivals"] == "trace":
        return trace(pathlib.Path(folder) / traffic["file"])
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
