#!/usr/bin/env python3
"""Does the simulator rank published layouts of one model as they were measured? BLOOM's trials on 384 A100s.

layout_rank.py TABLE.csv FORETRACE [--machine NAME] [--with nic=0.25x] [--framework WORD] [--dropout]
               [--blocking] [--only bloom] [--every N] [--csv FILE]

TABLE.csv: columns as in published training tables (id, layers, hidden, heads, gpus, tp, pp, micro_batch, global_batch,
metric, value, ...). Each layout is simulated with so many micro-batches that its pipeline is full, and with two more; each
further one adds half the difference. Rows of one model's shape are ranked by their time for a sequence. Nothing is fitted.
"""
import argparse
import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

TEXT = """schema_version: 1
name: trial
nodes: {nodes}
processes: {gpus}
{environment}training_step:
  model: {{style: {style}, layers: {layers}, hidden: {hidden}, heads: {heads}, kv_heads: {kv_heads}, ffn: {ffn}, vocab: {vocab}}}
  batch: {{sequence: {sequence}, micro: {micro}, passes: {passes}}}
  parallel: {{tensor: {tp}, pipeline: {pp}{split}}}
  sharding: {sharding}
  precision: {{parameters: bfloat16, reduce: {reduce}}}
  recompute: {recompute}
  framework: {framework}
  attention: {attention}
  dropout: {dropout}
  steps: 1
"""


def whole(row, name, otherwise=0):
    return int(float(row[name] or otherwise))


def sharding_of(row):
    word = row["zero_or_fsdp"].split()[0]
    return {"none": "ddp", "distributed": "zero1"}.get(word, word)


def recompute_of(row):
    return next((word for word in ("full", "selective") if row["recompute"].startswith(word)), "none")


def reduce_of(row):
    """What BLOOM's trials of 2022-02-28 and later held gradients in; those before did in 16 bits."""
    return "float32" if "fp32 gradient" in row["precision"] else "bfloat16"


def split_of(row):
    if whole(row, "tp", 1) == 1:
        return ""
    return ", loss: true" + (", sequence: true" if row["sequence_parallel"].startswith("yes") else "")


def padded_vocabulary(row):
    """Megatron's --make-vocab-size-divisible-by 128."""
    each = 128 * whole(row, "tp", 1)
    return -(-whole(row, "vocab") // each) * each


def refusal(row):
    if "fp8" in row["precision"]:
        return "arithmetic below 16 bits"
    if whole(row, "cp", 1) > 1 or whole(row, "vpp", 1) > 1:
        return "context parallel, or interleaved stages"
    if not any(name in row["framework"] for name in ("Megatron", "NeMo")):
        return "framework: " + row["framework"].split()[0]
    return ""


def step_seconds(given, row, passes, scratch):
    """None where the layout is refused."""
    gpus, each = whole(row, "gpus"), whole(row, "gpus_per_node", 8)
    file = pathlib.Path(scratch) / f"{row['id']}_{passes}.yaml"
    file.write_text(TEXT.format(
        nodes=gpus // each, gpus=gpus, environment=given.environment, layers=whole(row, "layers"), hidden=whole(row, "hidden"),
        style="llama" if "llama" in row["model"].lower() else "gpt", heads=whole(row, "heads"),
        kv_heads=whole(row, "kv_heads", whole(row, "heads")), recompute=recompute_of(row),
        attention="flash" if "NeMo" in row["framework"] else "unfused", framework=given.framework,
        dropout="true" if given.dropout else "false", reduce=reduce_of(row), split=split_of(row), ffn=whole(row, "ffn_hidden", 4 * whole(row, "hidden")), vocab=padded_vocabulary(row),
        sequence=whole(row, "seq_len"), micro=whole(row, "micro_batch"), passes=passes, tp=whole(row, "tp", 1),
        pp=whole(row, "pp", 1), sharding=sharding_of(row)), encoding="utf-8")
    command = [given.foretrace, "simulate", file, "--machine", given.machine, "--one-of-each"]
    for what_if in given.what_ifs:
        command += ["--with", what_if]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^step: [\d.]+ m?s,", done.stdout, re.M)
    if not found:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return None, next((line for line in why if "error" in line or "fit" in line), why[-1] if why else "?")
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if line.startswith("|")]
    column = rows[0].index("predicted")
    return max(seconds_in(row[column]) for row in rows if row[1].startswith("step")), ""


def seconds_in(text):
    value, unit = text.split()
    return float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def predicted(given, row, scratch):
    pp, micro = whole(row, "pp", 1), whole(row, "micro_batch")
    if refusal(row):
        return None, refusal(row)
    passes = whole(row, "global_batch") // (micro * whole(row, "dp", 1))
    few, more = min(passes, pp + 2), min(passes, pp + 4)
    first, why = step_seconds(given, row, few, scratch)
    if first is None or passes == few:
        return first, why
    second, why = step_seconds(given, row, more, scratch)
    if second is None:
        return None, why
    return second + (passes - more) * (second - first) / (more - few), ""


def correlation_of(a, b):
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    together = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return together / (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    place = [0.0] * len(values)
    for rank, i in enumerate(order):
        place[i] = rank
    return place


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", type=pathlib.Path)
    arguments.add_argument("foretrace", type=pathlib.Path)
    arguments.add_argument("--machine", default="a100-80gb-nvswitch-8")
    arguments.add_argument("--with", dest="what_ifs", action="append", default=[])
    arguments.add_argument("--blocking", action="store_true", help="CUDA_LAUNCH_BLOCKING=1, as BLOOM's trials ran")
    arguments.add_argument("--framework", default="megatron", choices=("megatron", "megatron-deepspeed"))
    arguments.add_argument("--dropout", action="store_true", help="Megatron's default, which no row says to be off")
    arguments.add_argument("--only", default="bloom")
    arguments.add_argument("--every", type=int, default=1, help="each n-th row only")
    arguments.add_argument("--csv", type=pathlib.Path)
    given = arguments.parse_args()
    given.foretrace = given.foretrace.resolve()
    given.environment = "environment: {CUDA_LAUNCH_BLOCKING: 1}\n" if given.blocking else ""
    lines = [line for line in given.table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["id"].startswith(given.only) and row["metric"] == "step_s"]
    rows = rows[::given.every]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda row: predicted(given, row, scratch), rows))
    shapes = collections.defaultdict(list)
    table = [["id", "layers", "hidden", "heads", "tensor", "pipeline", "data", "micro", "global", "measured_s",
              "predicted_s", "error", "refused"]]
    for row, (seconds, why) in zip(rows, results):
        measured = float(row["value"])
        names = ("layers", "hidden", "heads", "tp", "pp", "dp", "micro_batch", "global_batch")
        table.append([row["id"], *(row[name] for name in names), measured,
                      f"{seconds:.2f}" if seconds else "", f"{seconds / measured - 1:+.3f}" if seconds else "", why])
        if seconds:
            shape = tuple(row[name] for name in ("layers", "hidden", "heads"))
            day = re.search(r"measured (\S+?);", row["notes"])
            batch = whole(row, "global_batch")
            shapes[shape, ""].append((measured / batch, seconds / batch, row["id"]))
            shapes[shape, day.group(1) if day else "?"].append((measured / batch, seconds / batch, row["id"]))
    if given.csv:
        with given.csv.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(table)
    errors = [float(line[11]) for line in table[1:] if line[11]]
    sizes = sorted(map(abs, errors))
    print(f"{len(errors)} of {len(rows)} rows predicted: |error| median {100 * statistics.median(sizes):.1f} %, "
          f"90th percentile {100 * statistics.quantiles(sizes, n=10, method='inclusive')[-1]:.1f} %, bias {100 * statistics.fmean(errors):+.1f} %")
    for (shape, day), cells in sorted(shapes.items()):
        if len(cells) < 5:
            continue
        truth, guess, ids = zip(*cells)
        correlation = correlation_of(ranks(truth), ranks(guess))
        chosen = min(cells, key=lambda cell: cell[1])
        print(f"{' x '.join(shape)} {day or 'all days'}: {len(cells)} layouts, rank correlation {correlation:.2f}; chosen "
              f"{chosen[2]}, {100 * (chosen[0] / min(truth) - 1):+.1f} % of the best measured, {ids[truth.index(min(truth))]}")


if __name__ == "__main__":
    main()
