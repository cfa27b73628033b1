"""A measured run: requests and iterations, and what is told of them. Definitions: scenarios/serving.md. No PyTorch."""

import contextlib
import gzip
import json
import os
import pathlib

REQUEST_COLUMNS = ["id", "arrival_ns", "prompt", "output", "preempted", "first_ns", "last_ns", "intervals_us"]
PERCENTILES = (50, 90, 95, 99)


def percentile(values, p):
    """Linear between the two nearest ranks."""
    values = sorted(values)
    at = (len(values) - 1) * p / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def row_of(r):
    return [r.id, r.arrival_ns, r.prompt, r.output, r.preempted, r.token_ns[0], r.token_ns[-1],
            [round((b - a) / 1000) for a, b in zip(r.token_ns, r.token_ns[1:])]]


def summary(requests):
    """Of rows of REQUEST_COLUMNS."""
    values = {"ttft_ms": [(r[5] - r[1]) / 1e6 for r in requests],
              "tpot_ms": [(r[6] - r[5]) / 1e6 / (r[3] - 1) for r in requests if r[3] > 1],
              "itl_ms": [i / 1e3 for r in requests for i in r[7]],
              "e2e_ms": [(r[6] - r[1]) / 1e6 for r in requests]}
    seconds = (max(r[6] for r in requests) - min(r[1] for r in requests)) / 1e9
    told = {name: {"mean": round(sum(found) / len(found), 4)} | {f"p{p}": round(percentile(found, p), 4) for p in PERCENTILES}
            for name, found in values.items() if found}
    return told | {"seconds": round(seconds, 4), "requests_per_s": round(len(requests) / seconds, 4),
                   "output_tokens_per_s": round(sum(r[3] for r in requests) / seconds, 3)}


@contextlib.contextmanager
def beside(path):
    """A file beside `path` that becomes it at the end: each process has its own, and a failure leaves none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write(path, document):
    with beside(pathlib.Path(path)) as aside, gzip.open(aside, "wt", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
