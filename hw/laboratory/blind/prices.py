"""prices: which factors on named parameters bring a machine's predictions nearest to rounds.

For a machine that differs from a shipped one in a few prices. Each parameter in turn is raised or
lowered by STEPS while the regions' mean |log(predicted / measured)| falls by LEAST_GAIN; a region
that is off by more than MOST_ERROR counts as that. Regions of the named classes and of one GPU."""

import concurrent.futures
import math
import os
import statistics

import predict
from generate import read_rows

STEPS = (1.5, 1.15)
LEAST_GAIN = 1e-3  # a smaller one is the rounds' noise
MOST_ERROR = 0.7


def measured_of(directory, evaluated, classes):
    """{program's file: {(region, instance, process): measured us}} of one round."""
    programs = {row["program"]: row for row in read_rows(directory / "programs.csv")
                if row["gpus"] == "1" and row["class"] in classes}
    truth = {}
    for row in read_rows(directory / f"evaluation-{evaluated}.csv"):
        if row["program"] in programs and row["counts"] == "1":
            regions = truth.setdefault(directory / programs[row["program"]]["file"], {})
            regions[row["region"], row["instance"], row["process"]] = float(row["measured_us"])
    return truth


def mean_error(truth, simulate):
    """The regions' mean |log|; `simulate` makes a timeline of a program's file."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        timelines = list(pool.map(simulate, truth))
    errors = []
    for timeline, regions in zip(timelines, truth.values()):
        for region in timeline["regions"]:
            key = (region["name"], str(region["instance"]), str(region["process"]))
            if key in regions:
                us = region["samples_ns"][0] / 1000 / region["per"]
                errors.append(min(MOST_ERROR, abs(math.log(us / regions[key]))))
    return statistics.mean(errors)


def search(parameters, error_of):
    """The best factors found, and the errors before and with them."""
    factors = dict.fromkeys(parameters, 1.0)
    first = best = error_of(factors)
    for step in STEPS:
        for name in parameters:
            for factor in (step, 1 / step):
                while True:
                    tried = {**factors, name: factors[name] * factor}
                    error = error_of(tried)
                    if error > best - LEAST_GAIN:
                        break
                    best, factors = error, tried
    return factors, first, best


def prices(rounds, foretrace, machine, evaluated, classes, parameters):
    """Lines that name each parameter's factor, from the rounds' directories."""
    truth = {file: regions for directory in rounds
             for file, regions in measured_of(directory, evaluated, classes).items()}

    def error_of(factors):
        options = [f"--with={name}={factor:.6g}x" for name, factor in factors.items()
                   if factor != 1]
        return mean_error(truth, lambda file: predict.simulate(foretrace, file, machine, options))

    factors, before, after = search(parameters, error_of)
    regions = sum(map(len, truth.values()))
    return "".join(f"{name}: {factor:.3g}x\n" for name, factor in factors.items()) + \
        f"mean |log| of {regions} regions: {before:.3f} before, {after:.3f} with them\n"
