#!/usr/bin/env python3
"""How good the model is on NCCL's sweeps, by operation, number of GPUs and size: graph launches below
DIRECTORY/N_ranks/nccl_OPERATION, of every other size apart (the fit learned from those between).

  judge.py reports/measured --machine h200-nvswitch-8 --leave-out 8:4,7

A region's time is that of its slowest process. --leave-out: processes that do not count, on runs of
so many GPUs: on the machine with eight, processes 4 and 7 took 38 us longer for each launch of a
graph, whatever was in it. Of gather the middle one of all processes counts there: its root waits for
them. As Markdown."""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import tempfile

OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
              "gather", "scatter", "sendrecv"]
LARGE = 1 << 20  # bytes: from here the GPUs decide, not a kernel's fixed part
SWEEP = {"small_graph": (64, 0), "large_graph": (8 << 20, 17)}  # first size; place in the sweep


def times_of(timeline):
    """{(region, instance): {process: median us of one operation}}"""
    times = {}
    for region in timeline["regions"]:
        if region["name"] in SWEEP:
            us = statistics.median(region["samples_ns"]) / region["per"] / 1000
            times.setdefault((region["name"], region["instance"]), {})[region["process"]] = us
    return times


def whole(share, ranks, most):
    """The largest size that ranks share evenly, in a power of two times `share` each."""
    while 2 * share * ranks <= most:
        share *= 2
    return share * ranks


def parameters_of(timeline, ranks):
    """What the scenario was run with; one measured before that was noted had sizes that divide."""
    noted = timeline["versions"].get("parameters")
    if noted:
        return noted.split()
    return [f"ranks={ranks}", f"small={whole(4, ranks, 64)}B",
            f"large={whole(64, ranks, 8192)}KiB"]


def predicted(foretrace, machine, operation, parameters):
    with tempfile.TemporaryDirectory() as out:
        command = [foretrace, "simulate", f"scenarios/nccl/{operation}.yaml", "--machine", machine,
                   "-o", out]
        for parameter in parameters:
            command += ["--set", parameter]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return times_of(json.loads((pathlib.Path(out) / "predicted.timeline.json").read_text()))


def time_of(processes, left_out, middle):
    if middle:
        return statistics.median(processes.values())
    return max(us for process, us in processes.items() if process not in left_out)


def errors_of(measured, prediction, left_out, middle):
    """{(large, held out): [predicted / measured - 1]}"""
    errors = {}
    for (name, instance), processes in measured.items():
        first, place = SWEEP[name]
        key = (first * 2 ** instance >= LARGE, (instance + place) % 2 == 1)
        error = time_of(prediction[name, instance], left_out, middle) / time_of(
            processes, left_out, middle) - 1
        errors.setdefault(key, []).append(error)
    return errors


def judge(root, foretrace, machine, left_out):
    """{(operation, ranks): errors_of}"""
    jobs = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for folder in sorted(root.glob("*_ranks")):
            ranks = int(folder.name.split("_")[0])
            for operation in OPERATIONS:
                file = folder / f"nccl_{operation}" / "measured.timeline.json"
                if not file.exists():
                    continue
                timeline = json.loads(file.read_text())
                jobs[operation, ranks] = times_of(timeline), pool.submit(
                    predicted, foretrace, machine, operation, parameters_of(timeline, ranks))
        return {(operation, ranks): errors_of(
                    measured, run.result(), left_out.get(ranks, set()),
                    operation == "gather" and ranks in left_out)
                for (operation, ranks), (measured, run) in jobs.items()}


def cell(errors):
    size = [abs(error) for error in errors]
    return f"{100 * statistics.mean(size):.1f} % ({100 * max(size):.0f} %)" if size else "-"


def table(results):
    """Mean |error| and the worst; the last row is the mean over the operations."""
    columns = [(False, False), (False, True), (True, False), (True, True)]
    lines = ["| GPUs | operation | below 1 MiB, fit | held out | from 1 MiB, fit | held out |",
             "|---:|---|---:|---:|---:|---:|"]
    for ranks in sorted({ranks for _, ranks in results}):
        rows = [(operation, results[operation, ranks]) for operation in OPERATIONS
                if (operation, ranks) in results]
        for operation, errors in rows:
            cells = " | ".join(cell(errors.get(column, [])) for column in columns)
            lines.append(f"| {ranks} | {operation} | {cells} |")
        means = [statistics.mean(abs(error) for _, errors in rows for error in errors[column])
                 for column in columns]
        lines.append(f"| {ranks} | all | " +
                     " | ".join(f"{100 * mean:.1f} %" for mean in means) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path, help="where N_ranks/nccl_OPERATION lie")
    parser.add_argument("--machine", default="h200-nvswitch-8")
    parser.add_argument("--foretrace", default="foretrace")
    parser.add_argument("--leave-out", action="append", default=[], metavar="GPUS:PROCESS,...")
    args = parser.parse_args()
    left_out = {}
    for rule in args.leave_out:
        ranks, processes = rule.split(":")
        left_out[int(ranks)] = {int(process) for process in processes.split(",")}
    print(table(judge(args.root, args.foretrace, args.machine, left_out)))


if __name__ == "__main__":
    main()
