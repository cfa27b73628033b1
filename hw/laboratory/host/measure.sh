#!/bin/sh
# Measures the host of this machine, and what it does around its GPU, in about five minutes.
#
#   hw/laboratory/host/measure.sh OUT [ROUND]    ROUND: programs heavy on the host, as blind.py makes them
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   HOST_STATES   the experiments; default: built into OUT by nvcc
#   MPIEXEC       default: mpirun --bind-to none
#
# OUT gets host-1.yaml to host-3.yaml (the host before, between and behind), states.csv, operators.csv, and of a
# round measured.csv. What fails is said in log.txt and at the end, and the others go on.
set -u
if [ $# -lt 1 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
out=$1 round=${2:-}
mkdir -p "$out" || exit 2
log=$out/log.txt
failed=
try() {
  name=$1
  shift
  begin=$(date +%s)
  if "$@" 2>>"$log"; then
    echo "$name: $(($(date +%s) - begin)) s"
  else
    echo "$name: failed, see $log"
    failed="$failed $name"
  fi
}
harness=${FORETRACE_HW:-foretrace-hw}
states=${HOST_STATES:-$out/host_states}
build() {
  nvcc -O2 -std=c++17 "$here/main.cu" "$here/copies.cu" "$here/calls.cu" -lcublas -lpthread -o "$states"
}
write() {  # FILE COMMAND...
  file=$1
  shift
  "$@" >"$file"
}
[ -x "$states" ] || try build build
try host-1 "$harness" host -o "$out/host-1.yaml"
try states write "$out/states.csv" "$states"
try host-2 "$harness" host -o "$out/host-2.yaml"
if [ -n "$round" ]; then
  BUDGET=${BUDGET:-240} try round "$here/../blind/measure.sh" "$round" "$out" "${STARTS:-2}"
fi
try host-3 "$harness" host -o "$out/host-3.yaml"
try operators write "$out/operators.csv" python3 "$here/cpu_operators.py"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
