#!/usr/bin/env python3
"""What half of a machine's parts costs: the table in README.md here, made with `foretrace`.

models/what_if/halves.py FORETRACE            prints the table
models/what_if/halves.py FORETRACE --write    renews it in README.md
models/what_if/halves.py FORETRACE --check    exit 1 when README.md has another one
"""
import concurrent.futures
import csv
import io
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = HERE / "README.md"
GIB = "1G"
OTHER_KERNELS = ("-flash2", "-triton")  # the same machine with older software


def run(foretrace, *arguments):
    """stdout; None where the machine cannot do it."""
    done = subprocess.run([foretrace, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def nccl(operation, nodes, gpus, algorithm=None):
    """Time of 1 GiB over `nodes` nodes of `gpus` GPUs; by NCCL's own choice, or this algorithm."""
    def seconds(foretrace, machine, what_if):
        arguments = ["nccl-tests", operation, "--machine", machine, "-b", GIB, "-e", GIB, "--format", "csv"]
        arguments += ["--processes", str(nodes * gpus(machine)), "--nodes", str(nodes)]
        if algorithm:
            arguments += ["--env", f"NCCL_ALGO={algorithm}"]
        text = run(foretrace, *arguments, *what_if)
        return float(next(csv.DictReader(io.StringIO(text)))["time_us"]) if text else None
    return seconds


def region(scenario, name):
    """Time of a scenario's region on its slowest process."""
    def seconds(foretrace, machine, what_if):
        text = run(foretrace, "simulate", f"scenarios/{scenario}.yaml", "--machine", machine, *what_if)
        rows = [[cell.strip() for cell in line.split("|")] for line in (text or "").splitlines() if line.startswith("|")]
        times = [time_of(row[rows[0].index("predicted")]) for row in rows if row[1] == name]
        return max(times) if times else None
    return seconds


def time_of(text):
    value, unit = text.split()
    return float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def gpus_of(machine):
    found = re.search(r"^node: .*gpus: (\d+)", (ROOT / "models/machines" / f"{machine}.yaml").read_text(), re.M)
    return int(found.group(1))


COLUMNS = (
    ("all-reduce", "nvlink", nccl("all_reduce", 1, gpus_of)),
    ("ring", "nvlink", nccl("all_reduce", 1, gpus_of, "RING")),
    ("tree", "nvlink", nccl("all_reduce", 1, gpus_of, "TREE")),
    ("NVLS", "nvlink", nccl("all_reduce", 1, gpus_of, "NVLS")),
    ("all-gather", "nvlink", nccl("all_gather", 1, gpus_of)),
    ("all-to-all", "nvlink", nccl("alltoall", 1, gpus_of)),
    ("peer copies", "nvlink", region("streams/copies_between_gpus", "peer_to_peer")),
    ("gradients", "nvlink", region("training/data_parallel_buckets", "reduced_after_backward")),
    ("nic: all-gather", "nic", nccl("all_gather", 4, gpus_of)),
    ("nic: all-to-all", "nic", nccl("alltoall", 2, gpus_of)),
    ("hbm", "hbm", region("streams/large_kernels", "elementwise_on_1_stream")),
    ("pcie", "pcie", region("host_and_device/copy_beside_compute", "one_stream_light")),
    ("host", "host", region("training/gpt_step_ddp", "step")),
)


def cell(foretrace, machine, word, seconds):
    plain = seconds(foretrace, machine, [])
    half = seconds(foretrace, machine, ["--with", f"{word}=0.5x"]) if plain else None
    return f"{half / plain:.2f}" if half else "-"


def table(foretrace):
    files = sorted((ROOT / "models/machines").glob("*.yaml"))
    real = [file.stem for file in files if "gpu: synthetic" not in file.read_text(encoding="utf-8")]
    machines = [name for name in real if gpus_of(name) > 1 and not name.endswith(OTHER_KERNELS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cells = {(m, name): pool.submit(cell, foretrace, m, word, seconds)
                 for m in machines for name, word, seconds in COLUMNS}
        lines = ["| Machine | " + " | ".join(name for name, _, _ in COLUMNS) + " |",
                 "| --- |" + " ---: |" * len(COLUMNS)]
        for machine in machines:
            row = [cells[machine, name].result() for name, _, _ in COLUMNS]
            lines.append(f"| {machine} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    new = table(str(pathlib.Path(sys.argv[1]).resolve()))
    page = PAGE.read_text(encoding="utf-8")
    old = re.search(r"\| Machine \|.*?\n(?=\n|\Z)", page, re.S).group(0)
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(page.replace(old, new), encoding="utf-8")
    elif sys.argv[2:] == ["--check"]:
        if old != new:
            sys.exit(f"{PAGE} is stale: models/what_if/halves.py FORETRACE --write\n{new}")
    else:
        print(new, end="")


if __name__ == "__main__":
    main()
