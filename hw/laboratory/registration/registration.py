#!/usr/bin/env python3
"""nccl-tests' loops as programs on two GPUs, with and without registered buffers: 20 calls of an operation, and
20 launches of a CUDA graph of 20 calls (-G 20), 64 KiB to 256 MiB.

  registration.py write DIRECTORY              the scenarios, one for each operation and kind of memory
  registration.py predict DIRECTORY OUT.csv    what foretrace says
  registration.py measure DIRECTORY OUT        on this machine; FORETRACE_HW, MPIEXEC as in blind/measure.sh
  registration.py judge OUT.csv MEASURED.csv   mean errors by operation and region, as Markdown
  registration.py table OUT MEASURED.csv       the measurements as a table
  registration.py fit MEASURED.csv             nccl.direct.* of the machine file, from every other size

Memory `device` is cudaMalloc's, which NCCL cannot register on one node, `nccl` ncclMemAlloc's. Regions:
calls (not registered), graph (of 20 calls; memory `nccl`: registered by NCCL, NCCL_GRAPH_REGISTER=1 is its
default), registered (calls after nccl_comm_register), register, first (call on it: the peers map it),
deregister, capture."""

import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from least_squares import least_squares  # noqa: E402

SIZES = 13
# Of an operation: its size for a vector of `size` bytes, and its other keys.
OPERATIONS = {
    "all_reduce": ("$size * 2 ** i", ", op: sum"),
    "all_gather": ("$size / 2 * 2 ** i", ""),
    "reduce_scatter": ("$size / 2 * 2 ** i", ", op: sum"),
    "broadcast": ("$size * 2 ** i", ", root: 0"),
    "reduce": ("$size * 2 ** i", ", op: sum, root: 0"),
    "all_to_all": ("$size / 2 * 2 ** i", ""),
    "gather": ("$size / 2 * 2 ** i", ", root: 0"),
    "scatter": ("$size / 2 * 2 ** i", ", root: 0"),
    "sendrecv": ("$size * 2 ** i", ""),
}
MEMORIES = ("device", "nccl")
PER = {"calls": 20, "registered": 20, "graph": 400, "register": 2, "deregister": 2, "capture": 1, "first": 1}


def call(operation):
    size, more = OPERATIONS[operation]
    where = f"comm: world, stream: s, size: {size}, type: float32"
    if operation == "sendrecv":
        both = f"{where}, peer: 1 - process"
        return (f"nccl_group: {{ops: [nccl_send: {{buffer: a, {both}}}, "
                f"nccl_recv: {{buffer: b, {both}}}]}}")
    return f"nccl_{operation}: {{send_buffer: a, recv_buffer: b, {where}{more}}}"


def scenario(operation, memory):
    calls = f"repeat: {{times: 20, ops: [{call(operation)}]}}"
    registers = "".join(f"          - region: {{name: {what}, per: 2, ops: [nccl_comm_{what}: {{comm: world, buffer: a}}, "
                        f"nccl_comm_{what}: {{comm: world, buffer: b}}]}}\n" for what in ("register", "deregister"))
    register, deregister = registers.splitlines(keepends=True)
    return f"""\
# nccl-tests' loops of {operation} on 2 GPUs, memory: {memory}; written by registration.py.
schema_version: 1
name: {operation}_{memory}
parameters: {{size: 64KiB, launches: 20}}
processes: 2
streams: {{s: {{flags: non_blocking}}}}
graphs: {{g: {{}}}}
buffers:
  a: {{memory: {memory}, size: 256MiB}}
  b: {{memory: {memory}, size: 256MiB}}
communicators: {{world: {{members: all_devices, init: rank}}}}
threads:
  main:
    - repeat:
        index: i
        times: {SIZES}
        ops:
          - {call(operation)}
          - stream_synchronize: {{stream: s}}
          - host_barrier: {{}}
          - region: {{name: calls, per: 20, ops: [{calls}, stream_synchronize: {{stream: s}}]}}
          - host_barrier: {{}}
          - region:
              name: capture
              ops:
                - graph_capture: {{graph: g, stream: s, ops: [{calls}]}}
          - graph_launch: {{graph: g, stream: s}}
          - stream_synchronize: {{stream: s}}
          - host_barrier: {{}}
          - region:
              name: graph
              per: 400
              ops:
                - repeat: {{times: $launches, ops: [graph_launch: {{graph: g, stream: s}}]}}
                - stream_synchronize: {{stream: s}}
          - host_barrier: {{}}
{register}\
          - host_barrier: {{}}
          - region: {{name: first, issue_only: true, ops: [{call(operation)}]}}
          - stream_synchronize: {{stream: s}}
          - host_barrier: {{}}
          - region: {{name: registered, per: 20, ops: [{calls}, stream_synchronize: {{stream: s}}]}}
          - host_barrier: {{}}
{deregister}"""


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for operation in OPERATIONS:
        for memory in MEMORIES:
            (directory / f"{operation}_{memory}.yaml").write_text(scenario(operation, memory))


def rows_of(file):
    """Of the slower process; the median of the samples, us of one call."""
    timeline = json.loads(file.read_text())
    operation, memory = timeline["scenario"]["name"].rsplit("_", 1)
    slowest = {}
    for region in timeline["regions"]:
        us = statistics.median(region["samples_ns"]) / region["per"] / 1000
        key = (operation, memory, region["name"], 65536 << region["instance"])
        slowest[key] = max(us, slowest.get(key, 0))
    return slowest


def write_rows(rows, file):
    with open(file, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["operation", "memory", "region", "size_bytes", "us"])
        for key in sorted(rows):
            table.writerow([*key, f"{rows[key]:.3f}"])


def read_rows(file):
    with open(file) as table:
        return {(r["operation"], r["memory"], r["region"], int(r["size_bytes"])): float(r["us"]) for r in csv.DictReader(table)}


def predict(directory, out):
    rows = {}
    foretrace = os.environ.get("FORETRACE", "foretrace")
    for file in sorted(directory.glob("*.yaml")):
        target = directory / "predicted" / file.stem
        subprocess.run([foretrace, "simulate", str(file), "--machine", os.environ.get("MACHINE", "h200-nvswitch-8"),
                        "-o", str(target)], check=True, stdout=subprocess.DEVNULL)
        rows |= rows_of(target / "predicted.timeline.json")
    write_rows(rows, out)


def measure(directory, out):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch = os.environ.get("MPIEXEC", "mpirun --bind-to none").split()
    files = [str(file) for file in sorted(directory.glob("*.yaml"))]
    command = [*launch, "-n", "2", os.environ.get("FORETRACE_HW", "foretrace-hw"), "measure", *files, "-o", str(out),
               "--repetitions", os.environ.get("REPETITIONS", "3"), "--traced", "0", "--timeout", "20s"]
    if os.environ.get("CHECK") != "1":
        command.append("--no-check")
    sys.exit(subprocess.run(command, env=environment).returncode)


def table(out, file):
    rows = {}
    for timeline in sorted(pathlib.Path(out).rglob("measured.timeline.json")):
        rows |= rows_of(timeline)
    write_rows(rows, file)


def judge(predicted, measured):
    predicted, measured = read_rows(predicted), read_rows(measured)
    print("| operation | memory | region | sizes | mean error | worst | bias |\n|---|---|---|---:|---:|---:|---:|")
    groups, everything = {}, {}
    for key, us in measured.items():
        operation, memory, region, _ = key
        error = predicted[key] / us - 1
        groups.setdefault((region, memory, operation), []).append(error)
        everything.setdefault((region, memory, "all"), []).append(error)
    for name, errors in [*sorted(groups.items()), *sorted(everything.items())]:
        size = [abs(error) for error in errors]
        worst = max(errors, key=abs)
        print(f"| {name[2]} | {name[1]} | {name[0]} | {len(errors)} | {100 * statistics.mean(size):.1f} % | "
              f"{100 * worst:+.0f} % | {100 * statistics.mean(errors):+.1f} % |")


# Where Simple begins; steps of the ring; what a channel of 16 writes, as a share of the vector, into rings and chains.
RINGS = {"all_gather": (4 << 20, 2, 1 / 32, 0), "all_reduce": (2 << 20, 3, 1 / 16, 0),
         "broadcast": (2 << 20, 1, 0, 1 / 16)}
# Where Simple begins; the share of the vector that a peer gets; what both ways get of a port's 371 GB/s.
PAIRS = {"sendrecv": (1 << 20, 1, 0.9742), "all_to_all": (2 << 20, 0.5, 0.9742), "gather": (2 << 20, 0.5, 1),
         "scatter": (2 << 20, 0.5, 1)}
PORT = 371e3  # bytes/us
PAIR_BASE = 9.0  # us, nccl.send_recv.simple.base


def fit(file):
    """Relative errors, so that every size counts the same. The sizes between are held out."""
    times = {(o, size): us for (o, memory, region, size), us in read_rows(file).items()
             if (memory, region) == ("nccl", "graph")}
    learned = {True: [], False: []}
    pairs = {True: [], False: []}
    for (operation, size), us in times.items():
        every_other = (size // 65536).bit_length() % 2 == 1
        if operation in RINGS and size >= RINGS[operation][0]:
            _, steps, ring, chain = RINGS[operation]
            learned[every_other].append((us, [1, steps, ring * size / 1e3, chain * size / 1e3]))
        elif operation in PAIRS and size >= PAIRS[operation][0]:
            _, share, port = PAIRS[operation]
            pairs[every_other].append((us, share * size / (PORT * port)))
    found = least_squares([[x / us for x in terms] for us, terms in learned[True]], [1.0] * len(learned[True]))
    both = least_squares([[1 / us] for us, _ in pairs[True]], [1 - wire / us for us, wire in pairs[True]])[0]
    exchange = both - PAIR_BASE
    print(f"nccl.direct.exchange {exchange:.2f} us, base {found[0] - exchange:.2f} us, step {found[1]:.2f} us, "
          f"channel_bandwidth {1 / found[2]:.2f} GB/s, chain_bandwidth {1 / found[3]:.2f} GB/s")
    for name, every_other in (("learned from", True), ("held out", False)):
        errors = [sum(a * b for a, b in zip(found, terms)) / us - 1 for us, terms in learned[every_other]]
        errors += [(both + wire) / us - 1 for us, wire in pairs[every_other]]
        print(f"{name}: {len(errors)} points, mean |error| {100 * statistics.mean(map(abs, errors)):.1f} %")


def main():
    commands = {"write": write, "predict": predict, "measure": measure, "table": table, "judge": judge, "fit": fit}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    first, *rest = sys.argv[2:]
    commands[sys.argv[1]](pathlib.Path(first), *map(pathlib.Path, rest))


if __name__ == "__main__":
    main()
