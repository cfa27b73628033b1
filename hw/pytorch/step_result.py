"""measured.timeline.json of a training step: what the ranks measured, beside the program that a prediction is of. Needs no
PyTorch."""

import dataclasses
import hashlib
import json
import math

import result
import step_trace
from program import Program, ProgramError, read_program
from steps.scenario import scenario_text, why_no_scenario

VERSIONS = ("cuda", "nccl", "torch")  # those that measure.py writes
OBJECTS = ("streams", "events", "buffers", "communicators", "comms", "signals", "graphs", "barriers")


def own_program(c):
    """A configuration as a program of one region: joins with other measurements of it, and with no prediction."""
    text = json.dumps(dataclasses.asdict(c), sort_keys=True)
    scenario = {"name": c.id, "file": "", "program_hash": f"configuration-{hashlib.sha256(text.encode()).hexdigest()[:16]}"}
    thread = {"name": "main", "processes": list(range(c.ranks)),
              "ops": [{"id": 0, "kind": "region", "name": "step", "per": 1, "ops": []}]}
    return Program({"schema_version": 1, "kind": "program", "scenario": scenario, "nodes": 1, "processes": c.ranks,
                    "devices": 1, "warmup": 1, "environment": {}, **{key: [] for key in OBJECTS}, "threads": [thread],
                    "ops": [{"id": 0, "kind": "region", "line": 0, "label": "step"}]})


def program_of(c, directory, foretrace):
    """The program of a listed configuration, and why it is not the one that is predicted, or an empty text. Its scenario is
    written into `directory`."""
    reason = why_no_scenario(c)
    if reason:
        return own_program(c), f"no scenario says this step: {reason}"
    file = directory / f"{c.id}.yaml"
    file.write_text(scenario_text(c), encoding="utf-8")
    try:
        return read_program(file, foretrace), ""
    except ProgramError as error:
        return own_program(c), str(error)


def step_regions(program):
    """By process: the number of its region `step`, and how often that runs."""
    found = {}
    for process in range(program.processes):
        for thread in program.threads_of(process):
            for op in program.walk(program.threads[thread]["ops"]):
                if op["kind"] == "region" and op.get("name") == "step":
                    found[process] = (op["id"], math.prod(program.rows[op["id"]].get("loops", [])))
    if len(found) != program.processes:
        raise ProgramError(f"{program.document['scenario']['file']}: a process has no region 'step'")
    return found


def passes_of(timing, steps):
    """Lists of nanoseconds, the steps of a pass each: as measured, or the synchronised steps in a row."""
    if "passes_ns" in timing:
        return timing["passes_ns"]
    times = [round(one * 1e6) for one in timing["step_times_ms"]]
    return [times[at:at + steps] for at in range(0, len(times) - steps + 1, steps)] or [times]


def explanation(line):
    """Of a line of results.jsonl that is not `measured`: which rank failed, and how."""
    errors = {rank: values["error"] for rank, values in line["ranks"].items() if "error" in values}
    return [f"process {rank}, {error['phase']}: {error['type']}: {error['error']}" for rank, error in sorted(errors.items())]


def step_timeline(program, line, traces, environment, notes):
    """`line`: of results.jsonl. `traces`: what read_step() found, by process. `notes`: sentences for the reader, by key."""
    regions = step_regions(program)
    machine = f"{program.processes} x {environment.get('gpu') or 'CPU'}"
    versions = {key: environment[key] for key in VERSIONS if environment.get(key)} | notes
    if line["verdict"] != "measured":
        return result.timeline(program, machine, versions, ("failed", explanation(line)))
    samples, traced, peaks = {}, {}, []
    for rank, values in sorted(line["ranks"].items(), key=lambda item: int(item[0])):
        process, timing = int(rank), values["timing"]
        op, steps = regions[process]
        samples[process] = [{f"{op} {steps - len(one) + at}": time for at, time in enumerate(one)}
                            for one in passes_of(timing, steps)]
        memory = timing["memory"]
        if memory.get("allocated_peak_bytes") is not None:
            peaks.append([process, 0, memory["allocated_peak_bytes"], memory["reserved_peak_bytes"]])
        if process in traces:
            traced[process] = {f"{op} {steps - 1}": traces[process]["step_ns"]}
    strangers = sum(one["strangers"] for one in traces.values())
    if strangers:
        versions["device_records_of_no_call"] = str(strangers)
    rows, built, memory = step_trace.build(len(program.rows), traces)
    clock = max((one["clock_error_ns"] for one in traces.values()), default=0)
    document = result.timeline(program, machine, versions, rows=result.regions(program, samples, traced), built=built,
                               clock_error_ns=clock)
    document["ops"] = program.rows + rows
    if memory:
        document |= {"memory_columns": step_trace.MEMORY_COLUMNS, "memory": memory}
    if peaks:
        document |= {"memory_peak_columns": step_trace.PEAK_COLUMNS, "memory_peaks": peaks}
    return document
