"""measured.timeline.json (reports/timeline.schema.json) of a run in PyTorch."""

import json
import os
import pathlib
import tempfile

VERSION = "0.1.0"


def regions(program, samples, traced):
    """Rows of regions. `samples`: by process, a list of passes, each {"OP INSTANCE": nanoseconds}; `traced`: by process, one."""
    ops = {op["id"]: op for op in program.walk()}
    rows = []
    for process, passes in samples.items():
        for key in passes[0] if passes else ():
            op, instance = map(int, key.split())
            row = {"name": ops[op].get("name") or ops[op]["label"], "op": op, "instance": instance, "process": process,
                   "per": ops[op].get("per", 1), "samples_ns": [one[key] for one in passes], "low_factor": 1.0,
                   "high_factor": 1.0}
            if key in traced.get(process, {}):
                row["traced_ns"] = traced[process][key]
            rows.append(row)
    return rows


def timeline(program, machine, versions, outcome=("completed", ()), rows=(), built=((), (), ()), clock_error_ns=0):
    lanes, details, spans = built
    return {"schema_version": 1, "kind": "timeline", "origin": "measured", "scenario": program.document["scenario"],
            "machine": machine, "producer": f"foretrace hw/pytorch {VERSION}", "versions": versions,
            "clock_error_bound_ns": clock_error_ns, "outcome": {"kind": outcome[0], "explanation": list(outcome[1])},
            "ops": program.rows, "lanes": list(lanes), "regions": list(rows),
            "details": list(details) or [{"low_factor": 1.0, "high_factor": 1.0, "parameters": "fit"}],
            "span_columns": ["op", "instance", "lane", "begin_ns", "end_ns", "part", "detail"], "spans": list(spans),
            "flow_kinds": [], "flow_columns": ["kind", "from_span", "to_span"], "flows": []}


def write_whole(path, document):
    """The file appears whole or not at all."""
    write_text_whole(path, json.dumps(document, separators=(",", ":")) + "\n")


def write_text_whole(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
