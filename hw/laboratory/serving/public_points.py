#!/usr/bin/env python3
"""Public serving points against `foretrace simulate`: one engine, a closed loop, as each row says.

    python3 hw/laboratory/serving/public_points.py POINTS.csv [--every N] [--foretrace PROGRAM] [-o ROWS.csv]

POINTS.csv has the columns of the table that README.md names; it is not part of this repository. What is not asked is counted
by its reason. The yardstick: weights and cache once through the memory for each token (a roofline)."""

import argparse
import collections
import concurrent.futures
import csv
import pathlib
import re
import statistics
import subprocess
import tempfile

from public_traces import percentile

ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm", "tensorrt-llm": "tensorrt-llm"}
MODELS = {"llama-3.1-70b": "llama3-70b", "llama-3-70b": "llama3-70b", "llama-3.1-8b": "llama3-8b", "llama3.1-8b": "llama3-8b",
          "llama-3-8b": "llama3-8b", "qwen3-32b": "qwen3-32b", "qwen3-30b-a3b": "qwen3-30b-a3b", "qwen3-8b": "qwen3-8b",
          "qwen3-4b": "qwen3-4b", "qwen3-14b": "qwen3-14b", "llama3.1-405b": "llama3-405b", "mixtral-8x7b": "mixtral-8x7b",
          "qwen3-235b-a22b-fp8": "qwen3-235b-a22b", "gpt-oss-120b": "gpt-oss-120b", "deepseek-r1": "deepseek-v3",
          "deepseek-v3": "deepseek-v3", "deepseek-r1-0528": "deepseek-v3", "minimax-m2.5": "minimax-m2.5", "kimi-k2.5": "kimi-k2",
          "glm-4.5-air": "glm-4.5-air", "qwen3.5-397b-a17b": "qwen3.5-397b-a17b", "glm-5": "glm-5", "deepseek-v3.2": "deepseek-v3.2", "qwen3-1.7b": "qwen3-1.7b", "gpt-oss-20b": "gpt-oss-20b",
          "qwen3-30b-a3b-instruct-2507": "qwen3-30b-a3b", "qwen3-235b-a22b-instruct-2507": "qwen3-235b-a22b"}
PRECISIONS = {"fp8": "float8", "bf16": "bfloat16", "bf16?": "bfloat16", "fp16": "bfloat16", "fp4": "nvfp4", "awq-int4": "int4", "gptq-int4": "int4", "awq/gptq": "int4"}
CHECKPOINTS = {"gpt-oss-120b": "nvfp4", "gpt-oss-20b": "nvfp4", "deepseek-v3": "float8"}  # "as the checkpoint" where not bfloat16
GPUS = {"H100-80GB-SXM": "8xH100-SXM", "H200-141GB-SXM": "8xH200-SXM", "B200-180GB-SXM": "8xB200", "B300-270GB-SXM": "8xB300",
        "GB200-NVL72": "72xGB200/nvl72",
        "GB300-NVL72": "72xGB300/nvl72", "RTX-PRO-6000-96GB": "8xRTX-PRO-6000", "A100-80GB-SXM": "8xA100-80GB-SXM", "H20-96GB": "8xH20"}
LAYOUT = re.compile(r"(prefill workers/tp/pp/dp/moe_tp/moe_ep/batch|decode) (\d+)/(\d+)/(\d+)/(\d+)/(\d+)/(\d+)/\d")
MOST_LENGTH = 131_072  # of a request, where an engine is told nothing else
MOST_TOKENS = 600_000  # that a row's requests generate, all together
# InferenceMAX's client (its README): lengths from 0.8 of what the row says up to that, all as often; ten requests for each at a time.
# Other rows of the same exports do not name their client, and are asked so, too.
ITS_SOURCE = "ai-dynamo/aiconfigurator"
ITS_MEAN, ITS_SPREAD, ITS_REQUESTS = 0.9, "6.4%", 10


def scenario(row, architectures):
    """(text, machine) of a row, or (None, why not)."""
    engine, model = ENGINES.get(row["framework"].lower()), MODELS.get(row["model"].lower().rsplit("/", 1)[-1])
    precision, machine = PRECISIONS.get(row["precision"].lower()), GPUS.get(row["gpu"])
    if row["precision"] == "as the checkpoint":
        precision = CHECKPOINTS.get(model, "bfloat16")
    if not engine:
        return None, f"engine {row['framework'][:20]}"
    if not model or model not in architectures:
        return None, f"model {row['model'][:24]}"
    if not precision or not machine:
        return None, f"precision {row['precision']} or GPU {row['gpu']}"
    places = placement(row)
    if places is None:
        return None, "a pipeline, or a layout that is not whole"
    at_once = row["scenario"] == "all requests at once"
    many = int(float(row["requests"] if at_once else row["concurrency"] or row["batch"] or 0))
    if many < 1 or not row["isl"] or not row["osl"] or not row["tp"]:
        return None, "sizes not stated"
    if "SPECULATIVE" in row["notes"]:
        return None, "guesses tokens, and says no acceptance"
    its = row["source"].startswith(ITS_SOURCE)
    prompt, output = (round((ITS_MEAN if its else 1) * float(row[key])) for key in ("isl", "osl"))
    spread = f", spread: {ITS_SPREAD}" if its else ""
    requests = many if at_once else max(many, min((ITS_REQUESTS if its else 4) * many, MOST_TOKENS // output))
    most = 256 if at_once else max(256, many)
    longest = f", max_length: {prompt + output}" if prompt + output > MOST_LENGTH else ""
    return f"""schema_version: 1
name: point
serving:
  model: {model}
  precision: {{weights: {precision}, cache: {'float8' if precision != 'bfloat16' else 'bfloat16'}}}
  {places}
  engine: {{kind: {engine}, max_requests: {most}{longest}}}
  traffic: {{arrivals: closed, concurrency: {many}, prompt: {{mean: {prompt}{spread}}}, output: {{mean: {output}{spread}}}, requests: {requests}}}
""", machine


def parallel(tensor, data, expert):
    return f"parallel: {{tensor: {tensor}, data: {data}, expert: {expert}}}"


def placement(row):
    """`parallel` or `disaggregated` of a row; None: its layout is not simulated, not whole, or contradicts itself. Rows without the
    batch of an engine give one engine of each kind whatever there were."""
    if row["mode"] == "agg":
        if int(row["pp"] or 1) > 1 or not row["tp"]:
            return None
        tensor, data, expert = int(row["tp"]), int(row["dp"] or 1), int(row["ep"] or 1) or 1
        if tensor * data == expert * expert > 8:  # counted once for its GPUs and once for its experts: its name says "tp8_ep8"
            tensor, data = (expert, 1) if data == 1 else (1, expert)
        elif f"_tp{tensor}_ep{tensor}_" in row["notes"] and tensor * data == expert:  # "tp4_ep4", on 16 GPUs
            data, expert = 1, tensor
        return parallel(tensor, data, expert) if tensor * data <= 8 else None  # "dp 64" on a machine of eight
    kinds = []
    for _, engines, tensor, stages, data, experts_tensor, expert in LAYOUT.findall(row["notes"]):
        if int(stages) > 1 or int(tensor) * int(data) != int(experts_tensor) * int(expert):
            return None
        kinds.append(f"{{engines: {engines}, {parallel(tensor, data, expert)}}}")
    return f"disaggregated: {{prefill: {kinds[0]}, decode: {kinds[1]}}}" if len(kinds) == 2 else None


def asked(program, folder, number, text, machine):
    path = pathlib.Path(folder) / f"{number}.yaml"
    path.write_text(text, encoding="utf-8")
    ran = subprocess.run([program, "simulate", str(path), "--machine", machine, "--format", "csv"], capture_output=True, text=True)
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if "error:" in line]
        return lines[0][-60:] if lines else "no answer"
    return {row["value"]: tuple(float(row[k]) for k in ("predicted", "low", "high")) for row in csv.DictReader(ran.stdout.splitlines())}


def others(row, answer):
    """The times to the first token and per output token that a row has beside its metric, by their names."""
    for name in ("ttft_ms", "tpot_ms"):
        if row[name] and not row["metric"].startswith(name[:4]):
            yield name, *answer[f"{name}_mean"], float(row[name])


def told(row, answer):
    """(predicted, low, high, measured) of a row's metric, or None."""
    metric, measured = row["metric"], float(row["value"])
    if metric in ("tpot_ms", "tpot_mean_ms", "tpot_median_ms"):
        return (*answer["tpot_ms_mean"], measured)
    if metric in ("output_tokens_per_s", "system_tokens_per_s"):
        return (*answer["output_tokens_per_s"], measured)
    if metric == "request_s":
        return (*(1e-3 * time for time in answer["e2e_ms_mean"]), measured)
    return (*answer["ttft_ms_mean"], measured) if metric.startswith("ttft_mean") else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points")
    parser.add_argument("--every", type=int, default=1, help="only each N-th of the rows that can be asked")
    parser.add_argument("--only", default="", help="a regular expression: rows in whose source, framework, model, GPU or metric it is found")
    parser.add_argument("--foretrace", default="foretrace")
    parser.add_argument("-o", "--output")
    given = parser.parse_args()
    architectures = {p.stem for p in (pathlib.Path(__file__).parents[3] / "scenarios" / "architectures").glob("*.json")}
    with open(given.points, encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    left_out, jobs = collections.Counter(), []
    for row in rows:
        if not re.search(given.only, " ".join(row[k] for k in ("source", "framework", "model", "gpu", "metric")), re.I):
            continue
        text, machine = scenario(row, architectures)
        if text is None:
            left_out[machine] += 1
        else:
            jobs.append((row, text, machine))
    found = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = jobs[::given.every]
        answers = pool.map(lambda job: asked(given.foretrace, folder, *job), [(i, t, m) for i, (_, t, m) in enumerate(jobs)])
        for (row, _, _), answer in zip(jobs, answers):
            if isinstance(answer, str):
                left_out[f"refused: {answer}"] += 1
                continue
            values = told(row, answer)
            if values is None:
                left_out[f"metric {row['metric']}"] += 1
            else:
                found.append((row, *values))
                found += [(row | {"metric": name}, *beside) for name, *beside in others(row, answer)]
    report(found)
    print("not asked:", "; ".join(f"{count} {why}" for why, count in left_out.most_common(12)))
    if given.output:
        with open(given.output, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "metric", "predicted", "low", "high", "measured"])
            writer.writerows([row["id"], row["metric"], *values] for row, *values in found)


def report(found):
    groups = collections.defaultdict(list)  # metric, mode, engine, GPU, precision and model
    for row, predicted, low, high, measured in found:
        key = (row["metric"], row["mode"], row["framework"].lower(), row["gpu"], row["precision"].lower(), row["model"].lower())
        for group in {key[:1], key[:2], key[:3], key[:4], key}:
            groups[group].append((predicted / measured - 1, low <= measured <= high))
    for group, values in sorted(groups.items()):
        errors = sorted(abs(e) for e, _ in values)
        print(f"{', '.join(group):<64} {len(values):>4} rows  median {100 * statistics.median(errors):5.1f} %  90th "
              f"{100 * percentile(errors, 0.9):5.1f} %  bias {100 * statistics.median(e for e, _ in values):+6.1f} %  "
              f"in band {100 * sum(b for _, b in values) / len(values):3.0f} %")


if __name__ == "__main__":
    main()
