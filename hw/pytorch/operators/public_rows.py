#!/usr/bin/env python3
"""How far kernels are off that models/kernels has no row of: public measurements of other libraries' kernels, drawn by a seed, against
`foretrace simulate`. Needs no PyTorch and no GPU.

    python3 hw/pytorch/operators/public_rows.py KERNELS.csv.gz --foretrace build/release/sim/foretrace [--count 200] [--seed 1] [-o ROWS.csv]

KERNELS.csv.gz: rows as aiconfigurator publishes them (gpu, family, precision, m, n, k, batch, heads, ..., time_us). Each drawn row becomes a
captured kernel with what it computes and moves, or a product; attention takes the rule of cuDNN's attention, all else that of bytes and flops.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

MACHINES = {"H100-80GB-SXM": "h100-nvswitch-8", "H200-141GB-SXM": "h200-nvswitch-8"}
FAMILIES = {("gemm", "bf16"), ("bmm", "bf16"), ("attention_prefill", "bf16"), ("attention_decode", "bf16"), ("attention_encoder", "bf16"), ("moe", "bf16"),
            ("quantize", "fp8_static")}
HALF = 2  # bytes


def attention(row, causal):
    b, h, kv, d, s = (int(row[k]) for k in ("batch", "heads", "kv_heads", "head_dim", "seq"))
    decode = row["family"] == "attention_decode"
    queries, keys = (1, s + 1) if decode else (s, s)
    word = f"cudnn_attention_forward.public_{d}{'_causal' if causal and not decode else ''}"
    moved = HALF * d * b * (2 * queries * h + 2 * keys * kv)
    return kernel(word, 4 * b * h * queries * keys * d, moved, d, queries, b * h)


def kernel(word, flops, moved, inner=1, joined=1, channels=1):
    return f"library_kernel: {{id: ROW, kernel: captured, flops: {flops}, size: {moved}B, name: {word}, inner: {inner}, joined: {joined}, channels: {channels}}}"


def operation(row):
    """Of a row; None where it is none of ours (windows; experts that get tokens unevenly)."""
    family = row["family"]
    if family.startswith("attention"):
        return None if row["window"] not in ("", "0") else attention(row, family == "attention_prefill")
    if family in ("gemm", "bmm"):
        m, n, k = (int(row[x]) for x in "mnk")
        batch = f", batch: {row['batch']}" if family == "bmm" else ""
        # PyTorch's linear: column by column W^T x
        return f"gemm: {{id: ROW, m: {n}, n: {m}, k: {k}{batch}, transpose_a: true, type: bfloat16, a: one, b: other, c: result}}"
    if family == "quantize":
        elements = int(row["m"]) * int(row["k"])
        return kernel("quantize.public", 0, 3 * elements, int(row["k"]), elements, 1)
    if row["distribution"] != "balanced":
        return None
    tokens, experts, topk, hidden, inter, tp, ep = (int(row[k]) for k in ("tokens", "experts", "topk", "hidden", "inter", "tp", "ep"))
    mine = max(1, tokens * topk // ep)
    columns = inter // tp
    used = min(experts // ep, mine)
    moved = HALF * (3 * used * hidden * columns + 4 * mine * hidden + 3 * mine * columns)
    return kernel("grouped_experts.public", 6 * mine * hidden * columns, moved, hidden, mine, columns)


def drawn(path, count, seed):
    """Rows of both GPUs, as many of each family."""
    with gzip.open(path, "rt") as file:
        rows = [r for r in csv.DictReader(line for line in file if not line.startswith("#")) if r["gpu"] in MACHINES and (r["family"], r["precision"]) in FAMILIES]
    draw, by_family = random.Random(seed), {}
    for row in rows:
        made = operation(row)
        if made:
            by_family.setdefault((row["gpu"], row["family"]), []).append((row, made))
    found = []
    for key in sorted(by_family):
        draw.shuffle(by_family[key])
    while len(found) < count:
        for key in sorted(by_family):
            if by_family[key] and len(found) < count:
                found.append(by_family[key].pop())
    return found


def scenario(operations):
    lines = ["schema_version: 1", "name: public", "processes: 1", "buffers:"]
    lines += [f"  {name}: {{memory: device, size: 8GB}}" for name in ("one", "other", "result")]
    lines += ["threads:", "  main:", "    ops:"]
    for i, made in enumerate(operations):
        lines += [f"    - {made.replace('ROW', f'row_{i}')}", "    - device_synchronize: {}"]
    return "\n".join(lines) + "\n"


def predicted(foretrace, machine, operations):
    """Microseconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        file, run = pathlib.Path(folder) / "public.yaml", pathlib.Path(folder) / "run"
        file.write_text(scenario(operations))
        subprocess.run([*foretrace, "simulate", str(file), "--machine", machine, "-o", str(run)], check=True, stdout=subprocess.DEVNULL)
        timeline = json.loads((run / "predicted.timeline.json").read_text())
    numbers = {op["id"]: int(op["label"][4:]) for op in timeline["ops"] if op.get("label", "").startswith("row_")}
    column = {name: i for i, name in enumerate(timeline["span_columns"])}
    found = {}
    for span in timeline["spans"]:
        op = span[column["op"]]
        if op in numbers and span[column["part"]] > 0:
            found[numbers[op]] = found.get(numbers[op], 0) + (span[column["end_ns"]] - span[column["begin_ns"]]) / 1e3
    return [found[i] for i in range(len(operations))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows")
    parser.add_argument("--foretrace", default="foretrace")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", help="the drawn rows with both times")
    options = parser.parse_args()
    errors, out = {}, []
    chosen = drawn(options.rows, options.count, options.seed)
    for gpu, machine in MACHINES.items():
        mine = [one for one in chosen if one[0]["gpu"] == gpu]
        times = predicted(options.foretrace.split(), machine, [made for _, made in mine])
        for (row, _), us in zip(mine, times):
            error = us / float(row["time_us"]) - 1
            for key in ((gpu, row["family"]), (gpu, "all"), ("both", "all")):
                errors.setdefault(key, []).append(error)
            out.append([gpu, row["family"], *(row[k] for k in ("m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "seq", "tokens", "experts", "topk", "hidden", "inter", "tp", "ep")),
                        row["time_us"], f"{us:.3f}"])
    print("| GPU | family | rows | median | nine of ten | bias |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for (gpu, family), many in sorted(errors.items()):
        size = sorted(map(abs, many))
        ninetieth = statistics.quantiles(size, n=10, method="inclusive")[-1] if len(size) > 1 else size[0]
        print(f"| {gpu} | {family} | {len(many)} | {statistics.median(size):.1%} | {ninetieth:.1%} | {statistics.median(many):+.1%} |")
    if options.output:
        with open(options.output, "w", newline="") as file:
            csv.writer(file, lineterminator=os.linesep).writerows(out)


if __name__ == "__main__":
    main()
