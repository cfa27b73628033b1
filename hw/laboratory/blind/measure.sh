#!/bin/sh
# Measures a round on this machine's GPUs in one go, and writes measured.csv, failed.csv,
# environment.json and log.txt into OUT. Exits with 1 when a program failed: failed.csv says why.
#
#   hw/laboratory/blind/measure.sh ROUND OUT [STARTS]     ROUND: reports/blind/round-1; STARTS: 3
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   MPIEXEC       default: mpirun --bind-to none
#   GPUS          what to use of this machine; default: what nvidia-smi lists
#   REPETITIONS   of each program in each start; default: 10
#   BUDGET        seconds after which nothing new is begun; default: 540
set -u
if [ $# -lt 2 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec python3 "$(dirname "$0")/blind.py" measure "$1" "$2" --starts "${3:-3}"
