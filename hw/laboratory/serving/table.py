#!/usr/bin/env python3
"""Traffic predicted from measured iterations: the engine's own scheduler, on a clock that a table moves on.

    python3 hw/laboratory/serving/table.py CALIBRATION FILE... > predicted.csv
    python3 hw/laboratory/serving/table.py CALIBRATION --errors        # of iterations that were held out

This is no model of the GPU: what `foretrace simulate` will say must be at least as near. README.md has the formulas."""

import gzip
import json
import pathlib
import statistics
import sys

ENGINE = pathlib.Path(__file__).resolve().parents[2] / "serving" / "engine"
sys.path[:0] = [str(ENGINE), str(pathlib.Path(__file__).resolve().parents[1])]

import results  # noqa: E402
import scenario as scenarios  # noqa: E402
import traffic  # noqa: E402
from extents import Extents  # noqa: E402
from least_squares import least_squares  # noqa: E402
from scheduler import Request, Scheduler  # noqa: E402

LOOP_NS, LOOP_REQUEST_NS = 20000, 1000  # of the loop around an iteration: assumed, the calibration does not have it
LEAST_BAND = 0.04  # of iterations' times


def solved(rows, values):
    """Least squares, each row weighted to a relative error."""
    return least_squares([[x / v for x in row] for row, v in zip(rows, values)], [1.0] * len(values))


def between(points, x):
    """Piecewise linear, and beyond its ends as in the last piece."""
    if len(points) == 1:
        return points[0][1]
    at = next((i for i in range(1, len(points) - 1) if x <= points[i][0]), len(points) - 1)
    (x0, y0), (x1, y1) = points[at - 1:at + 1]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def features(decodes, decode_context, chunks):
    """Constant, tokens, pairs of query and key of chunks, keys that decodes read."""
    tokens = decodes + sum(c for c, _ in chunks)
    return [1.0, tokens, sum(c * (cached + c / 2) for c, cached in chunks), decode_context]


class Table:
    def __init__(self, rows):
        graphs = [r for r in rows if r["graph"]]
        eager = [r for r in rows if not r["graph"] and r["composition"][2]]
        usual = statistics.median(r["gpu_ns"] / r["gpu_min_ns"] for r in graphs)
        self.decode = {}
        for r in graphs:  # the least of a few and its usual excess: one slow call is none of the table's business
            n, context = r["composition"][:2]
            around = statistics.median(s["wall_ns"] - s["gpu_ns"] for s in graphs if s["graph"] == n)
            self.decode.setdefault(n, []).append((context, r["gpu_min_ns"] * usual + around))
        prefill = [r for r in eager if not r["composition"][0]]
        self.prepare = solved([[1.0, r["composition"][2]] for r in prefill], [r["wall_ns"] - r["gpu_ns"] for r in prefill])
        bound = [r for r in eager if r["composition"][2] >= 1024 and r["wall_ns"] > 1.15 * r["called_ns"]]
        found = [features(n, n * context, [(chunk, cached)]) for n, context, chunk, cached in (r["composition"] for r in bound)]
        self.columns = 4 if any(f[3] for f in found) else 3
        self.gpu = solved([f[:self.columns] for f in found], [r["gpu_ns"] for r in bound])
        calls = lambda which: statistics.median(r["gpu_ns"] for r in which)
        small = [r for r in prefill if r["composition"][2] <= 256]
        mixed = [r for r in eager if r["composition"][0]]
        self.calls = calls(small)
        self.mixed_calls = statistics.median(max(0, r["called_ns"] - self.prepare[0]) for r in mixed) if mixed else self.calls

    def time_ns(self, decodes, decode_context, chunks):
        if not chunks:
            graph = min(g for g in self.decode if g >= decodes)
            return between(sorted(self.decode[graph]), decode_context / graph)
        f = features(decodes, decode_context, chunks)
        gpu = sum(x * y for x, y in zip(self.gpu, f))
        return self.prepare[0] + self.prepare[1] * f[1] + max(gpu, self.mixed_calls if decodes else self.calls)


def kind(composition):
    return "decode" if not composition[2] else "mixed" if composition[0] else "prefill"


def errors(rows):
    """By kind: relative errors of compositions that the table did not see, one held out at a time. Of decodes none at an end."""
    found = {"decode": [], "prefill": [], "mixed": []}
    for held in rows:
        n, context, chunk, cached = held["composition"]
        contexts = [r["composition"][1] for r in rows if r["composition"][0] == n and not r["composition"][2]]
        if chunk == 0 and not min(contexts) < context < max(contexts):
            continue
        told = Table([r for r in rows if r is not held]).time_ns(n, n * context, [(chunk, cached)] if chunk else [])
        found[kind(held["composition"])].append(told / held["wall_ns"] - 1)
    return found


def usable(document):
    return [r for r in document["rows"] if "gpu_ns" in r and (r["graph"] or r["composition"][2])]


def ninetieth(values):
    return results.percentile([abs(v) for v in values], 90)


def serve(read, table, blocks, arena_blocks, slower):
    """Rows of requests, as hw/serving/engine/engine.py writes them; `slower` by kind of iteration."""
    arrivals = traffic.requests(read["traffic"], read["folder"])
    extents = Extents(arena_blocks)
    whole = lambda r: extents.take(r.id, scheduler.blocks_of(r.prompt + r.output)) is not None
    scheduler = Scheduler(read["engine"], blocks, whole, lambda r: extents.give(r.id))
    requests, done, next_, now = [], 0, 0, 0
    while done < len(arrivals):
        while next_ < len(arrivals) and arrivals[next_].at_ns is not None and arrivals[next_].at_ns <= now:
            a = arrivals[next_]
            requests.append(Request(next_, a.at_ns, a.prompt, a.output))
            scheduler.add(requests[-1])
            next_ += 1
        if not scheduler.busy():
            now = arrivals[next_].at_ns
            continue
        step = scheduler.schedule()
        decodes = [r for r, tokens in step if tokens == 1]
        chunks = [(tokens, r.computed) for r, tokens in step if tokens > 1]
        took = table.time_ns(len(decodes), sum(r.computed + 1 for r in decodes), chunks)
        took *= 1 + slower["eager" if chunks else "decode"]
        now += round(took + LOOP_NS + LOOP_REQUEST_NS * len(step))
        for _ in scheduler.finish(step, now):
            done += 1
            waiting = next((a for a in arrivals[next_:] if a.at_ns is None), None)
            if waiting:
                waiting.at_ns = now
    return [results.row_of(r) for r in requests], scheduler.preemptions


def calibration(path):
    """What hw/serving/measure.py --calibrate wrote, by model."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def predict(path, documents):
    """The file's name; summaries of the middle, of all faster and of all slower."""
    read = scenarios.read(path)
    if read["model"] not in documents:
        raise SystemExit(f"{path}: the calibration has {', '.join(documents)}, not {read['model']}")
    document = documents[read["model"]]
    rows = usable(document)
    out = errors(rows)
    band = {"decode": max(LEAST_BAND, ninetieth(out["decode"])),
            "eager": max(LEAST_BAND, ninetieth(out["prefill"] + out["mixed"]))}
    block, limit = read["engine"]["block"], read["engine"]["cache_tokens"]
    arena = document["arena_tokens"]
    blocks, table = min(arena, limit or arena) // block, Table(rows)
    told = []
    for sign in (0, -1, 1):
        requests, preemptions = serve(read, table, blocks, arena // block, {k: sign * v for k, v in band.items()})
        told.append(results.summary(requests) | {"preemptions": preemptions})
    return read["name"], told


def main(arguments):
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    documents, files = calibration(arguments[0]), arguments[1:]
    if files == ["--errors"]:
        print("model,kind,compositions,median_percent,p90_percent")
        for model, document in documents.items():
            found = errors(usable(document))
            for name, values in found.items():
                print(f"{model},{name},{len(values)},{100 * results.percentile([abs(v) for v in values], 50):.1f},"
                      f"{100 * ninetieth(values):.1f}")
        return
    print("file,value,predicted,low,high")
    for path in files:
        name, (middle, *ends) = predict(path, documents)
        for value, found in middle.items():
            for part in found if isinstance(found, dict) else [None]:
                of = [t[value][part] if part else t[value] for t in (middle, *ends)]
                print(f"{name},{value}{'_' + part if part else ''},{of[0]},{min(of)},{max(of)}")


if __name__ == "__main__":
    main(sys.argv[1:])
