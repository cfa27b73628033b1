"""Compares the steps of scenarios/styles, call by call, with captures of the same sizes that nothing was learned from.

    python3 prove.py FORETRACE [FAMILY...] [--work DIR] [--golden DIR] [--machine h100-nvswitch-8]     # FORETRACE: the program

A call is equal where operation, kernel, bytes and flops by its shapes, grid, block and stream are. --golden keeps the captures' calls for the tests."""

import argparse
import difflib
import gzip
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from families import FAMILIES, point  # noqa: E402

# Sizes of no capture that was learned from.
SIZES = {"middle": "B=4 S=2048 H=2560 N=20 K=5 D=128 F=6912 V=32768 P=2048", "small": "B=2 S=1152 H=1536 N=12 K=4 D=128 F=4096 V=50304 P=1152",
         "wide": "B=1 S=4096 H=4096 N=32 K=8 D=128 F=11008 V=128256 P=4096"}
CASES = [(size, precision, recompute, clip, optimizer) for size, precision, recompute, clip, optimizer in (
    ("middle", "bfloat16", False, True, "fused"), ("middle", "autocast", False, True, "fused"), ("middle", "bfloat16", True, False, "foreach"),
    ("middle", "autocast", True, True, "foreach"), ("small", "bfloat16", False, False, "fused"), ("small", "autocast", False, False, "foreach"),
    ("wide", "bfloat16", False, True, "fused"))]
LAYERS = {"middle": 4, "small": 12, "wide": 3}


def config(family, s, layers):
    """A config.json of the sizes, or sizes in place."""
    sys.path.insert(0, str(HERE))
    from families import config_of
    made = config_of(family, {**s, "L": layers})
    return {"model_type": family, **made}


def yaml(name, precision, recompute, clip, optimizer, s):
    optimizer = {"fused": "adamw", "foreach": "adamw_foreach"}[optimizer]
    parameters = "float32" if precision == "autocast" else "bfloat16"
    return f"""schema_version: 1
name: {name}
processes: 1
training_step:
  model: {{config: {name}.json}}
  code: huggingface
  batch: {{sequence: {s['S']}, micro: {s['B']}}}
  precision: {{parameters: {parameters}}}
  optimizer: {optimizer}
  recompute: {'full' if recompute else 'none'}
  clip_gradients: {'true' if clip else 'false'}
  dropout: false
"""


def calls(text):
    """Lines of a printed step that are work of the GPU or of its streams."""
    step = text[text.index("- region:"):]
    return [line.strip() for line in step.splitlines() if line.strip().startswith("- ") and
            not line.strip().startswith(("- repeat", "- region", "- framework_call", "- device_synchronize"))]


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout


def simulated(program, file, machine):
    return json.loads(run(program, "simulate", file, "-m", machine, "--format", "json"))["captured_step"]


def prove(a, family, case):
    size, precision, recompute, clip, optimizer = case
    s = point(SIZES[size], family)
    options = [f"--precision={precision}", f"--optimizer={optimizer}"] + ["--recompute"] * recompute + ["--clip"] * clip
    name = "_".join([family, size, precision, optimizer] + ["recompute"] * recompute + ["clip"] * clip)
    out = a.work / name
    if not (out / "rank0.calls.jsonl.gz").exists():
        sizes = ",".join(f"{k}={v}" for k, v in {**s, "L": LAYERS[size]}.items())
        run(sys.executable, "-m", "foretrace", "capture", "-o", out, "--", HERE / "train.py", family, sizes, *options)
    (out / f"{name}.json").write_text(json.dumps(config(family, s, LAYERS[size])))
    (out / f"{name}.yaml").write_text(yaml(name, precision, recompute, clip, optimizer, s))
    ours, theirs = (calls(run(a.foretrace, "print", out / file)) for file in (f"{name}.yaml", "step.yaml"))
    equal = sum(m.size for m in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks())
    if a.verbose:
        for line in difflib.unified_diff(ours, theirs, "style", "capture", n=0, lineterm=""):
            print("   ", line[:230])
    style, capture = (simulated(a.foretrace, out / file, a.machine) for file in (f"{name}.yaml", "step.yaml"))
    memory = [one["memory"] for one in (style, capture)]
    print(f"| {family} | {size} | {precision}{', recomputed' if recompute else ''}{', clipped' if clip else ''}, {optimizer} | {equal} of {len(theirs)} | "
          f"{style['seconds'] * 1e3:.2f} | {capture['seconds'] * 1e3:.2f} | {style['busy_seconds'] * 1e3:.2f} | {capture['busy_seconds'] * 1e3:.2f} | "
          f"{memory[0]['allocated_peak'] / 1e9:.3f} | {memory[1]['allocated_peak'] / 1e9:.3f} | {memory[0]['reserved_peak'] / 1e9:.3f} | "
          f"{memory[1]['reserved_peak'] / 1e9:.3f} |", flush=True)
    if a.golden:
        golden = {"description": yaml(name, precision, recompute, clip, optimizer, s), "config": config(family, s, LAYERS[size]),
                  "equal": equal, "allocated": memory[1]["allocated_peak"], "calls": theirs}
        with open(a.golden / f"{name}.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
            file.write(json.dumps(golden, indent=0).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretrace")
    parser.add_argument("family", nargs="*", default=list(FAMILIES))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("captures"))
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--machine", default="h100-nvswitch-8")
    parser.add_argument("--verbose", action="store_true", help="each call that differs")
    parser.add_argument("--cases", type=int, default=len(CASES), help="only so many of a family")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    print("| Family | Sizes | Step | Calls equal | ms | captured | busy ms | captured | allocated GB | captured | reserved GB | captured |\n"
          "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for each in arguments.family:
        for one in CASES[:arguments.cases]:
            prove(arguments, each, one)
