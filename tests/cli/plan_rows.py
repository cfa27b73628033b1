#!/usr/bin/env python3
"""Every row of a plan, simulated by the command that plan prints: time and memory within 1 %, exit code 0.

    tests/cli/plan_rows.py build/release/sim/foretrace DIRECTORY llama3-8b,llama3-70b 8,64,512 [arguments of plan ...]

ctest runs it on a small model; the long run (five models, three numbers of GPUs, three rows each) takes some minutes.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
MOST = 0.01


def run(command, directory):
    return subprocess.run(command, cwd=directory, capture_output=True, text=True)


def rows_of(foretrace, directory, model, gpus, rest):
    """The rows of a plan, and the command that it prints for its first row's scenario; none where nothing fits."""
    plan = run([foretrace, "plan", model, "--gpus", gpus, "-o", "plan.json", "--write-scenario", "1", "row.yaml", *rest], directory)
    if "no layout fits" in plan.stdout:
        return [], ""
    if plan.returncode != 0:
        sys.exit(f"plan {model} --gpus {gpus}: exit code {plan.returncode}\n{plan.stderr}")
    command = re.search(r"^row 1: (foretrace simulate row.yaml .*)$", plan.stdout, re.M).group(1)
    return json.loads((directory / "plan.json").read_text())["rows"], command.removesuffix(" --few-passes")


def simulated(foretrace, directory, command, scenario, *rest):
    """Seconds of a step and GB of a GPU as simulate prints them; why not, where it does not."""
    (directory / "row.yaml").write_text(scenario)
    ran = run([foretrace, *shlex.split(command)[1:], *rest], directory)
    step = re.search(r"^step: ([\d.]+) (\w+),", ran.stdout, re.M)
    memory = re.search(r"^memory of a GPU: ([\d.]+) GB", ran.stdout, re.M)
    if ran.returncode != 0 or not step or not memory:
        return None, None, f"exit code {ran.returncode}: {ran.stderr.strip()[:300]}"
    return float(step[1]) * UNITS[step[2]], float(memory[1]), ""


def judge(row, seconds, gigabytes):
    """Problems of a row beside its simulation, which prints four digits of times and tenths of GB."""
    if abs(seconds / row["step_s"] - 1) > MOST:
        yield f"{row['step_s']:.4g} s a step, simulated {seconds:.4g} s"
    if abs(gigabytes - row["memory_gb"]) > MOST * gigabytes + 0.05:
        yield f"{row['memory_gb']:.1f} GB, simulated {gigabytes:.1f} GB"
    if row["bubble"] > row["exposed"] + 1e-6:
        yield f"a bubble of {row['bubble']:.3f} is part of {row['exposed']:.3f} exposed"


def main(foretrace, directory, models, gpus, *rest):
    foretrace = str(pathlib.Path(foretrace).absolute())
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    models = [str(pathlib.Path(model).absolute()) if model.endswith(".json") else model for model in models.split(",")]
    judged = failed = 0
    for model in models:
        for count in gpus.split(","):
            rows, command = rows_of(foretrace, directory, model, count, rest)
            if not rows:
                print(f"{model} {count} GPUs: no layout fits")
            for row in rows:
                seconds, gigabytes, why = simulated(foretrace, directory, command, row["scenario"],
                                                     *(["--few-passes"] if row["simulated_passes"] < row["passes"] else []))
                problems = [why] if why else list(judge(row, seconds, gigabytes))
                judged, failed = judged + 1, failed + bool(problems)
                what = f"tensor {row['tensor']} pipeline {row['pipeline']} data {row['data']} {row['sharding']} {row['recompute']}"
                simulated_as = "" if why else f"{row['step_s']:.4g} / {seconds:.4g} s, {row['memory_gb']:.1f} / {gigabytes:.1f} GB"
                print(f"{model} {count} GPUs, row {row['row']} ({what}): {simulated_as} {'; '.join(problems) or 'ok'}", flush=True)
    print(f"{judged} rows, {failed} differ")
    return 1 if failed or not judged else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
