"""known-host: the round once more, each start predicted for the host's speed that the harness saw in it.

A second figure beside the blind one. How fast a host calls CUDA differs by half between hosts of a kind,
and from minute to minute on one; nobody knows it before a measurement. The harness notes what a
kernel's launch takes between a program's repetitions (launch_us), and the program is predicted by the
same model with `--with host=` what was predicted for a launch over that. What is left is the model's, as far
as one call stands for all that the host does."""

import concurrent.futures
import os
import pathlib
import statistics
import sys

import evaluate
import predict
from generate import commit, read_rows, write_rows

LEAST, MOST = 0.4, 2.5  # beyond them a launch says something else than the host's speed


def launches_of(measured):
    """{program: {start: microseconds of a launch}} of those that say it."""
    launches = {}
    for row in measured:
        if float(row.get("launch_us") or 0) > 0:
            launches.setdefault(row["program"], {})[row["start"]] = float(row["launch_us"])
    return launches


def factor_of(timeline, launch_us):
    """How many times as fast as predicted the host was; 1 where the prediction does not say."""
    predicted = timeline.get("launch_ns")
    return min(MOST, max(LEAST, predicted / 1000 / launch_us)) if predicted else 1


def middle(timelines):
    """The first of them, with each region's time and band the median of all."""
    first = timelines[0]
    for at, region in enumerate(first["regions"]):
        others = [one["regions"][at] for one in timelines]
        region["samples_ns"] = [statistics.median(one["samples_ns"][0] for one in others)]
        for key in ("low_factor", "high_factor"):
            region[key] = statistics.median(one.get(key, 1) for one in others)
    return first


def predict_known(foretrace, file, machine, launches):
    plain = predict.simulate(foretrace, file, machine)
    factors = {f"{factor_of(plain, us):.3f}" for us in launches}
    made = {factor: predict.simulate(foretrace, file, machine, [f"--with=host={factor}x"])
            for factor in factors}
    return middle([made[f"{factor_of(plain, us):.3f}"] for us in launches])


def known_host(directory, measured, machine, foretrace, into=None):
    """Writes INTO/known-host-MACHINE.csv, and its part of INTO/evaluation.md, INTO being DIRECTORY unless said; returns the summary. Programs
    without a launch are left out."""
    into = into or directory
    programs = {row["program"]: row for row in read_rows(directory / "programs.csv")}
    measured = read_rows(measured)
    launches = launches_of(measured)
    if not launches:
        sys.exit(f"{directory}: no launch_us in what was measured: an older harness did")
    model, rows = commit(pathlib.Path(__file__).parent), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {name: pool.submit(predict_known, foretrace, directory / programs[name]["file"],
                                  machine, list(starts.values()))
                for name, starts in launches.items()}
    for name, run in runs.items():
        rows += [{key: str(value) for key, value in row.items()}  # as a file would have them
                 for row in predict.rows_of(name, programs[name]["class"], run.result(), model)]
    rows, missing = evaluate.join(rows, [row for row in measured if row["program"] in launches],
                                  {name: row["gpus"] for name, row in programs.items()})
    text = evaluate.summary(rows, missing)
    write_rows(into / f"known-host-{machine}.csv", evaluate.COLUMNS, evaluate.written(rows))
    evaluate.write_part(into / "evaluation.md", f"{machine}, host known", text)
    return text
