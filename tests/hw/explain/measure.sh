#!/bin/sh
# Measures the planted causes and their repaired twins on one or two GPUs, and compares the time that each repair saves
# with what foretrace explain predicts: HARNESS FORETRACE MACHINE OUT
# One line for each: scenario, first cause, predicted gain, measured gain.
set -eu
harness=$1 foretrace=$2 machine=$3 out=$4
scenarios=$(dirname "$0")/../../../scenarios/explain
mkdir -p "$out"
for file in "$scenarios"/*.yaml; do
  name=$(basename "$file" .yaml)
  processes=$(sed -n 's/^processes: \([0-9]*\).*/\1/p' "$file")
  mpirun --bind-to none -n "${processes:-1}" "$harness" measure "$file" -o "$out/$name"
  "$foretrace" simulate "$file" --machine "$machine" -o "$out/$name" > "$out/$name/simulated.txt"
done
for file in "$scenarios"/*_repaired.yaml; do
  name=$(basename "$file" _repaired.yaml)
  "$foretrace" explain "$out/$name" --machine "$machine" --format json -o "$out/$name/explain.json"
  python3 - "$out" "$name" <<'PYTHON'
import json, statistics, sys
out, name = sys.argv[1:]
def measured(run):
    regions = json.load(open(f"{out}/{run}/measured.timeline.json"))["regions"]
    return max(statistics.median(r["samples_ns"]) for r in regions if r["name"] == "run")
first = json.load(open(f"{out}/{name}/explain.json"))["causes"][0]
gain = 1 - measured(name + "_repaired") / measured(name)
print(f"{name}: {first['cause']}, predicted {first['gain']:.3f}, measured {gain:.3f}")
PYTHON
done
