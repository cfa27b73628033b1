"""Published training speeds of one node against the prediction, with the naive yardstick beside.

usage: published_training.py TABLE.csv FORETRACE [--quality A] [--only PREFIX]

TABLE.csv: columns as id, gpu, gpus, layers, hidden, ..., metric, value; lines that begin with # are comments. Rows that
one node describes are predicted: dense, bfloat16, without context parallel. Yardstick: the median share of the GPU's peak
that other sources reach on this GPU, with or without full recomputation. Nothing here was used in a fit.
"""

import argparse
import collections
import concurrent.futures
import csv
import pathlib
import re
import statistics
import subprocess
import tempfile

MACHINES = {"H100-80GB-SXM": "h100-nvswitch-8", "H200-141GB-SXM": "h200-nvswitch-8",
            "A100-80GB-SXM": "a100-nvswitch-8", "A100-40GB-SXM": "a100-nvswitch-8"}
PEAK = {"H100-80GB-SXM": 989e12, "H200-141GB-SXM": 989e12, "A100-80GB-SXM": 312e12, "A100-40GB-SXM": 312e12}


def number(row, key, otherwise=None):
    try:
        return int(float(row[key]))
    except (TypeError, ValueError):
        return otherwise


def sizes(row):
    """Of one row, or None where it is no dense decoder of one node that can be expanded."""
    s = {key: number(row, key) for key in ("layers", "hidden", "heads", "ffn_hidden", "seq_len", "vocab", "gpus",
                                           "micro_batch", "global_batch")}
    if None in s.values() or row["experts"] or row["gpu"] not in MACHINES or not row["precision"].startswith("bf16"):
        return None
    s |= {"kv_heads": number(row, "kv_heads", s["heads"]), "tp": number(row, "tp", 1), "pp": number(row, "pp", 1)}
    if number(row, "cp", 1) != 1 or number(row, "vpp", 1) != 1 or s["gpus"] > 8 or "lora" in row["notes"].lower():
        return None
    return s


def flops_of_step(row, s):
    """Forward and backward, causal attention counted as half of the square."""
    width = s["hidden"] * (2 + 2 * s["kv_heads"] / s["heads"]) + (3 if is_llama(row) else 2) * s["ffn_hidden"]
    weights = s["layers"] * s["hidden"] * width + s["vocab"] * s["hidden"]
    tokens = s["seq_len"] * s["global_batch"]
    return tokens * (6 * weights + 6 * s["layers"] * s["hidden"] * s["seq_len"])


def is_llama(row):
    return any(word in row["model"].lower() for word in ("llama", "mistral", "qwen"))


def seconds_of(row, s):
    """The measured step."""
    value = float(row["value"])
    if row["metric"] == "step_s":
        return value
    if row["metric"] == "tokens_per_s_per_gpu":
        return s["seq_len"] * s["global_batch"] / value / s["gpus"]
    return None


def scenario(row, s):
    model = (f"style: {'llama' if is_llama(row) else 'gpt'}, layers: {s['layers']}, hidden: {s['hidden']}, heads: "
             f"{s['heads']}, kv_heads: {s['kv_heads']}, ffn: {s['ffn_hidden']}, vocab: {s['vocab']}")
    recompute = "full" if "full" in row["recompute"] else "selective" if "selective" in row["recompute"] else "none"
    shards = "fsdp" if "fsdp" in row["zero_or_fsdp"].lower() else "zero1" if "1" in row["zero_or_fsdp"] else "ddp"
    reduce = "bfloat16" if "PURE" in row["notes"] else "float32"
    wide = "float32" if shards == "fsdp" else "bfloat16"
    split = "true" if row["sequence_parallel"].startswith("yes") and s["tp"] > 1 else "false"
    return (f"schema_version: 1\nname: published\nprocesses: {s['gpus']}\ntraining_step:\n  model: {{{model}}}\n"
            f"  batch: {{sequence: {s['seq_len']}, micro: {s['micro_batch']}, global: {s['global_batch']}}}\n"
            f"  parallel: {{tensor: {s['tp']}, pipeline: {s['pp']}, sequence: {split}}}\n  sharding: {shards}\n"
            f"  recompute: {recompute}\n  precision: {{parameters: {wide}, reduce: {reduce}}}\n  steps: 2\n")


def predict(foretrace, row, s, directory):
    file = pathlib.Path(directory) / f"{row['id']}.yaml"
    file.write_text(scenario(row, s), encoding="utf-8")
    done = subprocess.run([foretrace, "simulate", str(file), "--machine", MACHINES[row["gpu"]]], capture_output=True,
                          text=True, check=False)
    found = re.search(r"^step: ([0-9.e+]+) ms", done.stdout, re.MULTILINE)
    if found:
        return float(found[1]) * 1e-3, ""
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return None, (lines[0] if lines else f"exit code {done.returncode}")[:90]


def efficiencies(rows):
    """Share of the peak by (gpu, full recomputation), then by source."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        s = sizes(row | {"gpus": "8"})
        peak = PEAK.get(row["gpu"])
        if s is None or row["quality"] == "C":
            continue
        s["gpus"] = number(row, "gpus", 1)
        seconds = seconds_of(row, s)
        if seconds:
            share = flops_of_step(row, s) / seconds / s["gpus"] / peak
            found[row["gpu"], "full" in row["recompute"]][row["id"].split("-")[0]].append(share)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("foretrace")
    parser.add_argument("--quality", default="A")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    with open(arguments.table, encoding="utf-8") as text:
        rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
    known = efficiencies(rows)
    chosen = [(row, sizes(row)) for row in rows if row["quality"] in arguments.quality]
    chosen = [(row, s) for row, s in chosen if s and row["id"].startswith(arguments.only) and seconds_of(row, s)]
    print("| row | model | GPUs | s | predicted | error | naive |\n| --- | --- | --- | ---: | ---: | ---: | ---: |")
    errors, naive_errors, refused = [], [], []
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(1) as pool:
        answers = pool.map(lambda pair: predict(arguments.foretrace, *pair, directory), chosen)
        for (row, s), (predicted, reason) in zip(chosen, answers):
            measured, prefix = seconds_of(row, s), row["id"].split("-")[0]
            others = [share for source, shares in known[row["gpu"], "full" in row["recompute"]].items()
                      if source != prefix for share in shares]
            naive = flops_of_step(row, s) / s["gpus"] / PEAK[row["gpu"]] / statistics.median(others) if others else None
            naive_text = f"{naive / measured - 1:+.0%}" if naive else "-"
            head = f"| {row['id']} | {row['model']} | {s['gpus']} {row['gpu']} | {measured:.3f}"
            if predicted is None:
                refused.append(row["id"])
                print(f"{head} | - | {reason} | {naive_text} |", flush=True)
                continue
            errors.append(predicted / measured - 1)
            if naive:
                naive_errors.append(naive / measured - 1)
            print(f"{head} | {predicted:.3f} | {errors[-1]:+.0%} | {naive_text} |", flush=True)
    for name, values in (("predicted", errors), ("naive", naive_errors)):
        if values:
            by_size = sorted(map(abs, values))
            print(f"\n{name}: {len(values)} rows, median {statistics.median(by_size):.1%}, 90th percentile "
                  f"{by_size[int(0.9 * (len(by_size) - 1))]:.1%}, bias {statistics.fmean(values):+.1%}")
    if refused:
        print(f"\nnot predicted: {len(refused)} rows")


if __name__ == "__main__":
    main()
