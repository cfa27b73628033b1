#!/usr/bin/env python3
"""vLLM's own times of a trace of requests against `foretrace simulate` with the same arrivals.

    python3 hw/laboratory/serving/public_traces.py RUN... --machine MACHINE [--model NAME] [--foretrace PROGRAM]

RUN is a folder with meta.json (`engine_kwargs` of vLLM) and requests.jsonl (tokens and times of each request), as LLMServingSim's
bench/examples has them; they are not part of this repository. Prints predicted and measured percentiles, and what is inside the band."""

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

MODELS = {"meta-llama/Llama-3.1-8B": "llama3-8b", "Qwen/Qwen3-32B": "qwen3-32b", "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b"}
POINTS = {"mean": None, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def percentile(values, share):
    """Linear between the two nearest ranks; None: the mean."""
    values = sorted(values)
    if share is None:
        return sum(values) / len(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def measured(requests):
    times = {"ttft_ms": [], "tpot_ms": [], "e2e_ms": []}
    for r in requests:
        first, last, queued = (1e3 * r[key] for key in ("first_token_ts", "last_token_ts", "queued_ts"))
        times["ttft_ms"].append(first - queued)
        times["e2e_ms"].append(last - queued)
        if r["output_toks"] > 1:
            times["tpot_ms"].append((last - first) / (r["output_toks"] - 1))
    found = {f"{name}_{point}": percentile(values, share) for name, values in times.items() for point, share in POINTS.items()}
    seconds = max(r["last_token_ts"] for r in requests) - min(r["queued_ts"] for r in requests)
    return found | {"output_tokens_per_s": sum(r["output_toks"] for r in requests) / seconds}


def write_scenario(folder, meta, requests, model):
    """Of the engine as it was started; what it does not say is vLLM's default."""
    asked = meta["engine_kwargs"]
    begin = min(r["arrival_time"] for r in requests)
    with open(folder / "trace.csv", "w", encoding="utf-8") as file:
        file.write("arrival_us,prompt,output\n")
        for r in sorted(requests, key=lambda r: r["arrival_time"]):
            file.write(f"{round(1e6 * (r['arrival_time'] - begin))},{r['input_toks']},{r['output_toks']}\n")
    data = asked["data_parallel_size"]
    expert = data * asked["tensor_parallel_size"] if asked["enable_expert_parallel"] else 1
    cache = f", cache_tokens: {meta['kv_cache']['num_kv_tokens']}" if "kv_cache" in meta else ""
    (folder / "trace.yaml").write_text(f"""schema_version: 1
name: trace
serving:
  model: {model}
  parallel: {{tensor: {asked['tensor_parallel_size']}, data: {data}, expert: {expert}}}
  engine: {{kind: vllm, max_batched_tokens: {asked['max_num_batched_tokens']}, max_requests: {asked['max_num_seqs']}{cache}}}
  traffic: {{arrivals: trace, file: trace.csv}}
""", encoding="utf-8")
    return folder / "trace.yaml"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--model", help="a name in scenarios/architectures; else by the name that vLLM was given")
    parser.add_argument("--foretrace", default="foretrace")
    given = parser.parse_args()
    for run in given.runs:
        meta = json.loads((run / "meta.json").read_text(encoding="utf-8"))
        requests = [json.loads(line) for line in (run / "requests.jsonl").read_text(encoding="utf-8").splitlines() if line]
        with tempfile.TemporaryDirectory() as folder:
            path = write_scenario(pathlib.Path(folder), meta, requests, given.model or MODELS[meta["model"]])
            ran = subprocess.run([given.foretrace, "simulate", str(path), "--machine", given.machine, "--format", "csv"],
                                 capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(ran.stderr)
        answer = {row["value"]: tuple(float(row[k]) for k in ("predicted", "low", "high")) for row in csv.DictReader(ran.stdout.splitlines())}
        print(f"{meta['model']}, {len(requests)} requests, vLLM {meta['vllm_version']}, {given.machine}")
        for name, value in measured(requests).items():
            predicted, low, high = answer[name]
            inside = "" if low <= value <= high else "  outside of the band"
            print(f"  {name:<20} predicted {predicted:>10.1f} ({low:.1f} to {high:.1f})  measured {value:>10.1f}  {100 * (predicted / value - 1):+6.1f} %{inside}")


if __name__ == "__main__":
    main()
