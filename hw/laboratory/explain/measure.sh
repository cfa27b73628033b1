#!/bin/sh
# Measures the planted causes and their repaired twins on one or two GPUs: HARNESS OUT. judge.py compares what it measured.
set -eu
harness=$1 out=$2
scenarios=$(dirname "$0")/../../../scenarios/explain
mkdir -p "$out"
for file in "$scenarios"/*.yaml; do
  processes=$(sed -n 's/^processes: \([0-9]*\).*/\1/p' "$file")
  mpirun --bind-to none -n "${processes:-1}" "$harness" measure "$file" -o "$out"
done
