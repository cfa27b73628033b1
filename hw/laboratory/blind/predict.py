"""predict: every region of a round on one machine model, as one CSV that is committed first."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile

from generate import commit, read_rows, write_rows

COLUMNS = ["program", "class", "region", "instance", "process", "predicted_us", "low_us", "high_us",
           "model_commit"]


def simulate(foretrace, file, machine, options=()):
    """The predicted timeline; RuntimeError with the program's words when there is none."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([foretrace, "simulate", str(file), "--machine", machine, "-o",
                               directory, *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")
        return json.loads((pathlib.Path(directory) / "predicted.timeline.json").read_text())


def rows_of(program, class_, timeline, model):
    rows = []
    for region in timeline["regions"]:
        us = region["samples_ns"][0] / 1000 / region["per"]
        low, high = (us * region.get(key, 1) for key in ("low_factor", "high_factor"))
        rows.append(dict(zip(COLUMNS, [program, class_, region["name"], region["instance"],
                                       region["process"], f"{us:.3f}", f"{low:.3f}", f"{high:.3f}",
                                       model])))
    return sorted(rows, key=lambda row: (row["region"], row["instance"], row["process"]))


def predict(directory, foretrace, machine, most_gpus=8, into=None):
    """Writes INTO/predicted-MACHINE.csv, INTO being DIRECTORY unless said; returns {program: why it has no prediction}."""
    programs = [row for row in read_rows(directory / "programs.csv")
                if int(row["gpus"]) <= most_gpus]
    model, rows, failed = commit(pathlib.Path(__file__).parent), [], {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [pool.submit(simulate, foretrace, directory / row["file"], machine)
                for row in programs]
    for row, run in zip(programs, runs):
        try:
            rows += rows_of(row["program"], row["class"], run.result(), model)
        except RuntimeError as error:
            failed[row["program"]] = str(error)
    name = pathlib.Path(machine).stem
    write_rows((into or directory) / f"predicted-{name}.csv", COLUMNS, rows)
    return failed
