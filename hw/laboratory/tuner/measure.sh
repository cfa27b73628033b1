#!/bin/sh
# Measures NCCL's own choice and eight others on a machine with two GPUs, in at most 200 s, into OUT: measured.csv,
# log.txt, and the timelines as an archive.
#
#   hw/laboratory/tuner/measure.sh OUT
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   MPIEXEC       default: mpirun --bind-to none
#   SECONDS_LEFT  further process launches begin while these last; default: 170
set -u
if [ $# -lt 1 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1 here=$(dirname "$0")
"${FORETRACE_HW:-foretrace-hw}" --version || { echo "the harness does not start: set FORETRACE_HW" >&2; exit 3; }
export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
work=$(mktemp -d)
mkdir -p "$out"
python3 "$here/tuner.py" write "$work/scenarios"
python3 "$here/tuner.py" measure "$work/scenarios" "$work/measured" "${SECONDS_LEFT:-170}" 2>&1 | tee "$out/log.txt"
python3 "$here/tuner.py" table "$work/measured" "$out/measured.csv"
tar -C "$work" -czf "$out/timelines.tar.gz" measured
rm -rf "$work"
