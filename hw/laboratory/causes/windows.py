"""When do small kernels find SMs beside a product? Writes one scenario for each of 21 products.

    python3 hw/laboratory/causes/windows.py OUT          scenarios OUT/*.yaml
    foretrace-hw measure OUT/*.yaml -o MEASURED --no-check --repetitions 5 --traced 1
    python3 hw/laboratory/causes/windows.py MEASURED --table > reports/measured/causes/windows-h200.csv

Products follow each other on a stream, and hundreds of kernels wait on another one: spins of one block (tiny), of
40 blocks (forty), and sums of 256 KiB (small), more urgent (high) or not (same). The spans say when one began."""

import argparse
import csv
import json
import pathlib
import statistics
import sys

SHAPES = [  # m, n, k, type, how often: nvjet, older in half precision, float32
    (1408, 5048, 4224, "bfloat16", 15), (3304, 3008, 2432, "float16", 20),
    (2688, 3072, 3648, "bfloat16", 16), (3224, 3584, 4800, "float16", 11),
    (1944, 2648, 4352, "float16", 20), (4608, 4160, 3840, "bfloat16", 8),
    (5376, 1728, 2240, "float16", 20), (4096, 4096, 4096, "bfloat16", 8),
    (3200, 3435, 1920, "bfloat16", 20), (2304, 3072, 3072, "bfloat16", 20),
    (4224, 4096, 4429, "float16", 3), (5553, 1736, 3648, "bfloat16", 5),
    (1807, 4224, 1664, "float16", 10), (3041, 4608, 1695, "float16", 6),
    (2173, 5248, 3619, "float16", 4), (3419, 3200, 1408, "float16", 8),
    (2205, 2621, 1792, "float32", 6), (2624, 1537, 2944, "float32", 6),
    (2432, 2016, 2816, "float32", 4), (1792, 1664, 1920, "float32", 8),
    (1728, 1523, 2200, "float32", 8)]
KERNELS = [("tiny", "spin: {stream: %s, duration: 1us, blocks: 1}", 250),
           ("forty", "spin: {stream: %s, duration: 5us, blocks: 40}", 120),
           ("small", "elementwise: {stream: %s, src: small, dst: small}", 200)]
HEAD = """schema_version: 1
name: {name}
streams:
  busy: {{priority: 0, flags: non_blocking}}
  high: {{priority: -5, flags: non_blocking}}
  same: {{priority: 0, flags: non_blocking}}
buffers:
  a: {{memory: device, size: {a}B}}
  b: {{memory: device, size: {b}B}}
  c: {{memory: device, size: {c}B}}
  small: {{memory: device, size: 256KiB}}
threads:
  main:
"""
REGION = """    - region:
        name: {kernel}_{stream}
        ops:
          - repeat: {{times: {times}, ops: [{{gemm: {{stream: busy, m: {m}, n: {n}, k: {k}, type: {type}, a: a, b: b, c: c}}}}]}}
          - repeat: {{times: {count}, ops: [{{{op}}}]}}
          - stream_synchronize: {{stream: {stream}}}
    - device_synchronize: {{}}
"""
COLUMNS = ["m", "n", "k", "type", "product", "kernels", "stream", "region_us", "product_us",
           "first_before_end_us", "in_a_product", "duration_us", "gap_us", "duration_alone_us",
           "gap_alone_us"]
SHORT_US = 5  # beside a product is the kernel that adds its parts


def write(out):
    out.mkdir(parents=True, exist_ok=True)
    for m, n, k, type_, times in SHAPES:
        each = 4 if type_ == "float32" else 2
        name = f"windows_{m}_{n}_{k}_{type_}"
        text = HEAD.format(name=name, a=m * k * each, b=k * n * each, c=m * n * each)
        for stream in ("high", "same"):
            for kernel, op, count in KERNELS:
                text += REGION.format(kernel=kernel, stream=stream, times=times, m=m, n=n, k=k,
                                      type=type_, count=count, op=op % stream)
        (out / f"{name}.yaml").write_text(text)


def median(values):
    return f"{statistics.median(values):.2f}" if values else ""


def rows_of(timeline):
    """A row for each region: what its spans say, in microseconds."""
    streams = {lane["id"]: lane["name"] for lane in timeline["lanes"] if lane["kind"] == "stream"}
    measured = {region["name"]: region for region in timeline["regions"]}
    for region in (op for op in timeline["ops"] if op["kind"] == "region"):
        inside = range(region["id"] + 1, region["id"] + 1 + region["inside"])
        spans = [(s[3] / 1000, s[4] / 1000, streams[s[2]], s[6]) for s in timeline["spans"]
                 if s[0] in inside and s[2] in streams]
        product = next(op for op in timeline["ops"] if op["kind"] == "gemm" and op["id"] in inside)
        kernel, stream = region["label"].split("_")
        busy = sorted(s for s in spans if s[2] == "busy" and s[1] - s[0] > SHORT_US)
        others = sorted(s for s in spans if s[2] == stream)
        last = busy[-1][1]
        beside = [s for s in others if any(b[0] <= s[0] and s[1] <= b[1] for b in busy)]
        pairs = list(zip(others, others[1:]))
        of_each = [[s[0] for s in others if b[0] <= s[0] < b[1]] for b in busy]
        found = [(b, starts) for b, starts in zip(busy, of_each) if starts]
        m, n, k = product["shape"]
        samples = measured[region["label"]]["samples_ns"]
        yield dict(zip(COLUMNS, [
            m, n, k, product["variant"], timeline["details"][busy[0][3]].get("kernel", ""), kernel,
            stream, median([s / 1000 for s in samples]), median([b[1] - b[0] for b in busy]),
            median([b[1] - starts[0] for b, starts in found[1:]]),
            median([len(starts) for _, starts in found[1:]]),
            median([s[1] - s[0] for s in beside]),
            median([two[0] - one[1] for one, two in pairs if one in beside and two in beside]),
            median([s[1] - s[0] for s in others if s[0] > last]),
            median([two[0] - one[1] for one, two in pairs if one[0] > last])]))


def table(measured):
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for file in sorted(measured.glob("*/measured.timeline.json")):
        writer.writerows(rows_of(json.loads(file.read_text())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--table", action="store_true", help="the spans of what was measured there")
    options = parser.parse_args()
    table(options.directory) if options.table else write(options.directory)
