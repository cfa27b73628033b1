"""A measured run as a timeline that foretrace compare and report read: a lane for each request, one for the engine's
iterations, the cache in use, percentiles as regions. sim/applications/serving/timeline.cc writes the same of a prediction."""

from __future__ import annotations

import bisect
import dataclasses
import json
import pathlib
import re
import uuid

import results

QUANTITIES = ("TTFT", "TPOT", "ITL", "end to end")
DECODE_SIZES, PROMPT_SIZES = 17, 25  # powers of two
WHOLE_RUN = len(QUANTITIES) * (1 + len(results.PERCENTILES))
WAITS, PREFILL, DECODE, PREEMPTED = range(WHOLE_RUN + 1, WHOLE_RUN + 5)
DECODES = PREEMPTED + 1
PROMPTS = DECODES + DECODE_SIZES
MERGED = PROMPTS + PROMPT_SIZES
MOST_REQUESTS, MOST_ITERATIONS = 800, 50000  # beyond these some, or neighbours as one
ROOT = pathlib.Path(__file__).resolve().parents[3]


@dataclasses.dataclass
class Served:
    """A request that ended. Of a client, which sees no scheduler, `admitted_ns` is when it was sent."""
    id: int
    arrival_ns: int
    prompt: int
    output: int
    token_ns: list
    admitted_ns: list
    preempted_ns: list = dataclasses.field(default_factory=list)
    seen_by_client: bool = False


@dataclasses.dataclass
class Iteration:
    begin_ns: int
    end_ns: int
    decodes: int
    chunk_tokens: int
    running: int
    waiting: int
    blocks: int


def hash_of(name, arrivals):
    """By which predicted and measured runs of one traffic find each other."""
    lines = "".join(f"{'-' if a.at_ns is None else a.at_ns} {a.prompt} {a.output}\n" for a in arrivals)
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"foretrace serving 1\nname {name}\n{lines}"))


def power(count, powers):
    return min(max(0, (max(1, count) - 1).bit_length()), powers - 1)


def sizes_text(at, what):
    high = 1 << at
    return f"1 {what}" if at == 0 else f"2 {what}s" if at == 1 else f"{high // 2 + 1} to {high} {what}s"


def line_of(text):
    """Of the first key of `serving:`."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if re.match(r"serving\s*:", line)), 0)
    for number in range(begin + 1, len(lines)):
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            return number + 1
    return begin + 1


def named(path):
    """A file of the repository from there, any other as it was typed."""
    try:
        return pathlib.Path(path).resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return str(path)


def op_rows(line, requests, iterations):
    rows = []

    def add(kind, label="", times=0):
        rows.append({"id": len(rows), "kind": kind, "line": line} | ({"label": label} if label else {}) |
                    ({"loops": [times]} if times else {}))

    for quantity in QUANTITIES:
        for statistic in ("mean", *(f"p{p}" for p in results.PERCENTILES)):
            add("region", f"{quantity} {statistic}")
    add("region", "first arrival to last token")
    for kind in ("request_waits", "request_prefill", "request_decode", "request_preempted"):
        add(kind, times=requests)
    for at in range(DECODE_SIZES):
        add("decode_iteration", sizes_text(at, "request"), iterations)
    for at in range(PROMPT_SIZES):
        add("prefill_iteration", sizes_text(at, "token"), iterations)
    add("decode_iteration", "neighbours as one", iterations)
    return rows


def times_of(requests):
    """Nanoseconds of each quantity, as scenarios/serving.md defines them."""
    several = [r for r in requests if r.output > 1 and len(r.token_ns) > 1]
    return {"TTFT": [r.token_ns[0] - r.arrival_ns for r in requests],
            "TPOT": [(r.token_ns[-1] - r.token_ns[0]) / (r.output - 1) for r in several],
            "ITL": [b - a for r in several for a, b in zip(r.token_ns, r.token_ns[1:])],
            "end to end": [r.token_ns[-1] - r.arrival_ns for r in requests]}


def regions_of(requests):
    rows, op = [], 0

    def add(name, ns):
        rows.append({"name": name, "op": op, "instance": 0, "process": 0, "per": 1, "samples_ns": [max(0, round(ns))],
                     "low_factor": 1.0, "high_factor": 1.0})

    for quantity, values in times_of(requests).items():
        values.sort()
        for statistic in ("mean", *results.PERCENTILES):
            if values and statistic == "mean":
                add(f"{quantity} mean", sum(values) / len(values))
            elif values:
                add(f"{quantity} p{statistic}", results.percentile(values, statistic))
            op += 1
    if requests:
        add("first arrival to last token", max(r.token_ns[-1] for r in requests) - min(r.arrival_ns for r in requests))
    return rows


class Writer:
    def __init__(self, requests, iterations, block_bytes, blocks):
        self.requests, self.iterations, self.block_bytes, self.blocks = requests, iterations, block_bytes, blocks
        self.known = max([r.id for r in requests], default=-1) + 1
        self.every = -(-max(1, self.known) // MOST_REQUESTS)
        self.merged = -(-max(1, len(iterations)) // MOST_ITERATIONS)
        self.lanes, self.spans, self.memory, self.occupancy, self.drawn = [], [], [], [], 0

    def lane(self, kind, name, **more):
        self.lanes.append({"id": len(self.lanes), "kind": kind, "name": name, "node": 0, "process": 0} | more)
        return len(self.lanes) - 1

    def span(self, op, lane, instance, begin, end, part=0):
        if end > begin:
            self.spans.append([op, instance, lane, begin, end, part, 0])

    def is_drawn(self, number):
        return number % self.every == (number // self.every * 2654435761 >> 16) % self.every

    def request(self, r):
        self.drawn += 1
        lane = self.lane("request", f"request {r.id:0{len(str(max(0, self.known - 1)))}}")
        self.span(WAITS, lane, r.id, r.arrival_ns, r.admitted_ns[0])
        for number, begin in enumerate(r.admitted_ns):
            is_last = number == len(r.preempted_ns)
            end = r.token_ns[-1] if is_last else r.preempted_ns[number]
            at = bisect.bisect_right(r.token_ns, begin)
            first = min(end, r.token_ns[at]) if at < len(r.token_ns) else end
            self.span(PREFILL, lane, r.id, begin, first)
            self.span(DECODE, lane, r.id, first, end)
            if not is_last:
                self.span(PREEMPTED, lane, r.id, end, r.admitted_ns[number + 1])

    def engine(self):
        lane, counts = self.lane("stream", "iterations", device=0), {}
        for at in range(0, len(self.iterations), self.merged):
            group = self.iterations[at:at + self.merged]
            first = group[0]
            prompts = first.chunk_tokens > 0
            op = (MERGED if self.merged > 1 else PROMPTS + power(first.decodes + first.chunk_tokens, PROMPT_SIZES) if prompts else
                  DECODES + power(first.decodes, DECODE_SIZES))
            self.span(op, lane, counts.get(op, 0), first.begin_ns, group[-1].end_ns, 1)
            counts[op] = counts.get(op, 0) + 1
            self.memory.append([0, 0, first.begin_ns, max(i.blocks for i in group) * self.block_bytes,
                                self.blocks * self.block_bytes])
            self.occupancy.append([0, first.begin_ns, max(i.running for i in group), max(i.waiting for i in group)])
        end = self.iterations[-1].end_ns
        self.memory.append([0, 0, end, 0, self.blocks * self.block_bytes])
        self.occupancy.append([0, end, 0, 0])

    def in_flight(self):
        """What a client knows: requests that it has sent and that have not ended."""
        changes = sorted([(r.arrival_ns, 1) for r in self.requests] + [(r.token_ns[-1], -1) for r in self.requests])
        running = 0
        for at, change in changes:
            running += change
            self.occupancy.append([0, at, running, 0])
        step = -(-len(self.occupancy) // MOST_ITERATIONS)
        self.occupancy = self.occupancy[::step]


def of(read, arrivals, requests, iterations=(), *, producer, machine, versions, engine, gpus=1, block_bytes=0, blocks=0,
       preemptions=0, explanation=()):
    """The document. `requests`: those that ended; `explanation`: why others did not."""
    writer = Writer(requests, list(iterations), block_bytes, blocks)
    for request in requests:
        if writer.is_drawn(request.id):
            writer.request(request)
    writer.engine() if iterations else writer.in_flight()
    whole = sum(r.token_ns[-1] - r.arrival_ns for r in requests)
    waits = sum(r.admitted_ns[0] - r.arrival_ns + sum(a - p for a, p in zip(r.admitted_ns[1:], r.preempted_ns)) for r in requests)
    versions = dict(versions)
    if writer.every > 1 or writer.merged > 1:
        versions["drawn"] = (f"{writer.drawn} of {len(requests)} requests have a lane" + (
            f", {writer.merged} neighbouring iterations are one span" if writer.merged > 1 else "") + "; figures are of all")
    facts = {"engine": engine, "engines": 1, "gpus": gpus, "requests": len(requests),
             "output_tokens": sum(r.output for r in requests), "iterations": len(iterations), "preemptions": preemptions,
             "waiting_share": min(1.0, max(0.0, waits / whole)) if whole else 0.0,
             "occupancy_columns": ["process", "at_ns", "running", "waiting"], "occupancy": writer.occupancy}
    document = {
        "schema_version": 1, "kind": "timeline", "origin": "measured",
        "scenario": {"name": read["name"], "file": named(read["path"]), "program_hash": hash_of(read["name"], arrivals)},
        "machine": machine, "producer": producer, "versions": versions, "clock_error_bound_ns": 0,
        "outcome": {"kind": "failed" if explanation else "completed", "explanation": list(explanation)},
        "ops": op_rows(line_of(read["text"]), max(1, writer.known), max(1, len(iterations))), "lanes": writer.lanes,
        "regions": regions_of(requests), "details": [{"low_factor": 1.0, "high_factor": 1.0, "parameters": "fit"}]}
    if writer.memory:
        document |= {"memory_columns": ["process", "device", "at_ns", "allocated", "reserved"], "memory": writer.memory}
    return document | {
        "serving": facts, "span_columns": ["op", "instance", "lane", "begin_ns", "end_ns", "part", "detail"],
        "spans": writer.spans, "flow_kinds": ["launch", "record_wait", "send_recv", "signal"],
        "flow_columns": ["from_span", "to_span", "kind"], "flows": []}


def write(path, document):
    with results.beside(pathlib.Path(path)) as aside:
        aside.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
