#!/usr/bin/env python3
"""How large reports are, how long they take to write, and when a browser first paints them.

  timing.py FORETRACE CHROMIUM RUN/...   a page of these runs, and one of a run of 10^6 spans
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from chromium import Page

SPANS = 1_000_000


def make_long_run(directory):
    """One process with four streams: a host call and its kernel, again and again."""
    os.makedirs(directory)
    pairs = SPANS // 2
    spans = []
    for i in range(pairs):
        spans.append([0, i, 0, 2_000 * i, 2_000 * i + 1_500, 0, 0])
        spans.append([0, i, 1 + i % 4, 2_000 * i + 1_000, 2_000 * i + 8_000, 1, 0])
    lanes = [{"id": 0, "kind": "host_thread", "name": "main", "node": 0, "process": 0}]
    lanes += [{"id": i, "kind": "stream", "name": f"stream({i})", "node": 0, "process": 0, "device": 0}
              for i in range(1, 5)]
    ops = [{"id": 0, "kind": "gemm", "line": 9, "loops": [pairs]}]
    for origin in ("predicted", "measured"):
        timeline = {
            "schema_version": 1, "kind": "timeline", "origin": origin,
            "scenario": {"name": "long_run", "file": "long_run.yaml", "program_hash": "1"},
            "machine": "made", "producer": "timing.py", "versions": {}, "clock_error_bound_ns": 0,
            "outcome": {"kind": "completed", "explanation": []}, "ops": ops, "lanes": lanes,
            "details": [{"low_factor": 1, "high_factor": 1, "parameters": "fit"}],
            "span_columns": ["op", "instance", "lane", "begin_ns", "end_ns", "part", "detail"], "spans": spans,
            "flow_kinds": ["launch", "record_wait", "send_recv", "signal"],
            "flow_columns": ["from_span", "to_span", "kind"], "flows": [], "regions": []}
        with open(f"{directory}/{origin}.timeline.json", "w") as file:
            json.dump(timeline, file)


def report(program, runs, page):
    begin = time.monotonic()
    ran = subprocess.run([program, "report", *runs, "-o", page], capture_output=True, text=True)
    if ran.returncode not in (0, 2):
        sys.exit(ran.stderr)
    return time.monotonic() - begin


def main():
    program, chromium, *runs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        make_long_run(f"{scratch}/long")
        pages = [("1,000,000 spans each side", [f"{scratch}/long"])]
        if runs:
            pages.append((f"{len(runs)} runs", runs))
        for name, of in pages:
            file = f"{scratch}/page.html"
            written_s = report(program, of, file)
            page = Page(chromium)
            page.open(file)
            page.rest()
            paint_ms = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
            loaded_ms = page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart")
            nodes = page.evaluate("document.querySelectorAll('*').length")
            page.close()
            print(f"{name}: written in {written_s:.1f} s, {os.path.getsize(file) / 1e6:.2f} MB, "
                  f"{nodes} elements, first paint {paint_ms:.0f} ms, loaded {loaded_ms} ms")


if __name__ == "__main__":
    main()
