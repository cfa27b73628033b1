#!/usr/bin/env python3
"""Is what `foretrace nccl-tuner` names faster than NCCL's own choice? CUDA graphs of 20 collectives on two GPUs, once for
each way: NCCL's own, and with NCCL_ALGO, NCCL_PROTO and NCCL_MIN_NCHANNELS set. A process has one way.

  tuner.py write DIRECTORY                    the scenarios, one for each way
  tuner.py predict DIRECTORY OUT.csv          what foretrace says; FORETRACE, MACHINE
  tuner.py measure DIRECTORY OUT SECONDS      on this machine; FORETRACE_HW, MPIEXEC. Further launches while SECONDS last
  tuner.py table OUT MEASURED.csv             the measurements as a table: median over launches of the slower process
  tuner.py judge PREDICTED.csv MEASURED.csv   gains of each size's best predicted way, as Markdown"""

import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

KIB, MIB = 1 << 10, 1 << 20
PART = ("all_gather", "reduce_scatter")  # a call's size is one rank's part
SIZES = {  # NCCL's nBytes
    "all_reduce": [64 * KIB, 512 * KIB, MIB, 1536 * KIB, 2 * MIB, 3 * MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB],
    "all_gather": [64 * KIB, 512 * KIB, MIB, 2 * MIB, 3 * MIB, 4 * MIB, 32 * MIB, 128 * MIB],
    "reduce_scatter": [64 * KIB, 512 * KIB, MIB, 2 * MIB, 3 * MIB, 4 * MIB, 32 * MIB, 256 * MIB],
    "broadcast": [64 * KIB, 512 * KIB, MIB, 1536 * KIB, 4 * MIB, 8 * MIB, 64 * MIB],
    "reduce": [64 * KIB, 512 * KIB, MIB, 1536 * KIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB],
}
MORE = {"all_reduce": ", op: sum", "all_gather": "", "reduce_scatter": ", op: sum", "broadcast": ", root: 0",
        "reduce": ", op: sum, root: 0"}
WAYS = {"own": {}}
for protocol in ("LL", "LL128", "Simple"):
    WAYS[protocol] = {"NCCL_ALGO": "Ring", "NCCL_PROTO": protocol}
    WAYS[f"{protocol}_32"] = dict(WAYS[protocol], NCCL_MIN_NCHANNELS="32")
for protocol in ("LL", "Simple"):
    WAYS[f"Tree_{protocol}"] = {"NCCL_ALGO": "Tree", "NCCL_PROTO": protocol}


def scenario(way):
    environment = ", ".join(f'{name}: "{value}"' for name, value in {"NCCL_NVLS_ENABLE": "0", **WAYS[way]}.items())
    text = f"""\
# Collectives as NCCL does them with {environment}; written by tuner.py.
schema_version: 1
name: {way}
processes: 2
environment: {{{environment}}}
streams: {{s: {{flags: non_blocking}}}}
graphs: {{g: {{}}}}
buffers:
  a: {{memory: device, size: 256MiB}}
  b: {{memory: device, size: 256MiB}}
communicators: {{world: {{members: all_devices, init: rank}}}}
threads:
  main:
"""
    for operation, sizes in SIZES.items():
        if way.startswith("Tree") and operation != "all_reduce":
            continue
        for size in sizes:
            each = size // 2 if operation in PART else size
            call = (f"nccl_{operation}: {{comm: world, stream: s, send_buffer: a, recv_buffer: b, size: {each}B, "
                    f"type: float32{MORE[operation]}}}")
            text += f"""\
    - graph_capture: {{graph: g, stream: s, ops: [repeat: {{times: 20, ops: [{call}]}}]}}
    - graph_launch: {{graph: g, stream: s}}
    - stream_synchronize: {{stream: s}}
    - host_barrier: {{}}
    - region:
        name: {operation}_{size}
        per: 60
        ops:
          - repeat: {{times: 3, ops: [graph_launch: {{graph: g, stream: s}}]}}
          - stream_synchronize: {{stream: s}}
    - host_barrier: {{}}
"""
    return text


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for way in WAYS:
        (directory / f"{way}.yaml").write_text(scenario(way))


def rows_of(file):
    """us of one call, of the slower process."""
    timeline = json.loads(file.read_text())
    slowest = {}
    for region in timeline["regions"]:
        operation, size = region["name"].rsplit("_", 1)
        key = (operation, int(size), timeline["scenario"]["name"])
        us = statistics.median(region["samples_ns"]) / region["per"] / 1000
        slowest[key] = max(us, slowest.get(key, 0))
    return slowest


def write_rows(rows, file):
    with open(file, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["operation", "bytes", "way", "us", "low_us", "high_us"])
        for key in sorted(rows):
            launches = rows[key]
            table.writerow([*key, *(f"{us:.3f}" for us in (statistics.median(launches), min(launches), max(launches)))])


def read_rows(file):
    with open(file) as table:
        return {(r["operation"], int(r["bytes"]), r["way"]): tuple(float(r[k]) for k in ("us", "low_us", "high_us"))
                for r in csv.DictReader(table)}


def predict(directory, out):
    rows = {}
    for way in WAYS:
        target = directory / "predicted" / way
        subprocess.run([os.environ.get("FORETRACE", "foretrace"), "simulate", str(directory / f"{way}.yaml"), "--machine",
                        os.environ.get("MACHINE", "h200-nvswitch-8"), "-o", str(target)], check=True, stdout=subprocess.DEVNULL)
        for key, us in rows_of(target / "predicted.timeline.json").items():
            rows[key] = [us]
    write_rows(rows, out)


def measure(directory, out, seconds):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch = os.environ.get("MPIEXEC", "mpirun --bind-to none").split()
    begin, longest, number = time.monotonic(), 0, 0
    while number == 0 or time.monotonic() - begin + 1.1 * longest < seconds:
        number += 1
        started = time.monotonic()
        for way in WAYS:  # one after the other, so that what drifts does so for all
            command = [*launch, "-n", "2", os.environ.get("FORETRACE_HW", "foretrace-hw"), "measure",
                       str(directory / f"{way}.yaml"), "-o", str(out / f"launch_{number}" / way), "--repetitions", "7",
                       "--traced", "0", "--timeout", "20s", "--no-check"]
            done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            print(f"launch {number}, {way}: exit code {done.returncode}, {time.monotonic() - begin:.0f} s", flush=True)
            if done.returncode:
                print(done.stderr[-2000:], flush=True)
        longest = max(longest, time.monotonic() - started)


def table(out, file):
    rows = {}
    for timeline in sorted(out.rglob("measured.timeline.json")):
        for key, us in rows_of(timeline).items():
            rows.setdefault(key, []).append(us)
    write_rows(rows, file)


def size_text(size):
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size // KIB} KiB"


def judge(predicted, measured):
    predicted, measured = read_rows(predicted), read_rows(measured) if measured else {}
    print("| Operation | Size | Way | own us | this way | gain | own, measured | this way | gain | best way, measured |\n"
          "|---|---:|---|---:|---:|---:|---:|---:|---:|---|")
    for operation, sizes in SIZES.items():
        for size in sizes:
            ways = {way: us for (o, s, way), (us, _, _) in predicted.items() if (o, s) == (operation, size)}
            own = ways.pop("own")
            best = min(ways, key=ways.get)
            row = [operation, size_text(size), best, f"{own:.2f}", f"{ways[best]:.2f}", f"{own / ways[best]:.3f}"]
            real = {way: us for (o, s, way), (us, _, _) in measured.items() if (o, s) == (operation, size)}
            if "own" in real and best in real:
                fastest = min((way for way in real if way != "own"), key=real.get)
                row += [f"{real['own']:.2f}", f"{real[best]:.2f}", f"{real['own'] / real[best]:.3f}",
                        f"{fastest} ({real['own'] / real[fastest]:.3f})"]
            else:
                row += [""] * 4
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    paths = [pathlib.Path(word) for word in sys.argv[2:]]
    if sys.argv[1] == "measure":
        measure(paths[0], paths[1], float(sys.argv[4]))
    else:
        {"write": write, "predict": predict, "table": table,
         "judge": lambda p, m=None: judge(p, m)}[sys.argv[1]](*paths)
