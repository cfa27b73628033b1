#!/usr/bin/env bash
# From nothing to a report: packages, build, one prediction, compared with its measurement on real H200s.
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh
trap print_steps EXIT

scenario=prefetch_two_streams
foretrace=build/release/sim/foretrace
out=out/$scenario

predict() {
  mkdir -p "$out"
  "$foretrace" simulate "scenarios/examples/$scenario.yaml" --machine h200-nvswitch-8 -o "$out"
}
compare_with_measured() {
  cp "reports/measured/$scenario/measured.timeline.json" "$out/"
  "$foretrace" compare "$out"
}
write_report() {
  "$foretrace" report "$out" -o "$out/report.html"
}

step "packages" install_packages "${PACKAGES[@]}"
step "configure" configure release -DFORETRACE_HW=OFF  # needs no GPU, and its compiler takes 11 s to be asked
step "build" build release foretrace
step "simulate $scenario" predict
step "compare with the measured run" compare_with_measured
step "report" write_report
echo "$PWD/$out/report.html"
