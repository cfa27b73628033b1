#!/bin/sh
# Measures what the articles' rows still ask of real hardware, on a machine with two GPUs: operators
# on the CPU, files, fresh host memory, transfers through the host, and what data races return.
# Writes into OUT: a directory for each scenario, races.csv and log.txt.
#
#   hw/laboratory/articles/measure.sh OUT [STARTS]     STARTS: 3
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   MPIEXEC       default: mpirun --bind-to none
#   ONLY          some of: one memory two ranks races; default: all
#   TMPDIR        where the files lie that are read: a directory on storage
set -u
if [ $# -lt 1 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1 starts=${2:-3} root=$(cd "$(dirname "$0")/../../.." && pwd)
harness=${FORETRACE_HW:-foretrace-hw} launch=${MPIEXEC:-mpirun --bind-to none}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$out"

wanted() {  # LABEL
  case " ${ONLY:-one memory two ranks races} " in *" ${1%_*} "*) return 0 ;; esac
  return 1
}

measure() {  # LABEL PROCESSES OPTIONS FILE...
  label=$1 processes=$2
  shift 2
  wanted "$label" || return 0
  echo "$label: $processes processes, $(date +%T)"
  timeout 60 $launch -n "$processes" "$harness" measure "$@" -o "$out" --append \
    --start-label "$label" >> "$out/log.txt" 2>&1 || echo "$label: exit code $?"
}

cd "$root" || exit 1
start=1
while [ "$start" -le "$starts" ]; do
  measure "one_$start" 1 --repetitions 10 --timeout 10s scenarios/host_and_device/cpu_operators.yaml \
    scenarios/host_and_device/storage_readers.yaml \
    scenarios/conformance/cpu_operators_share_the_cores.yaml \
    scenarios/conformance/reading_a_file_leaves_the_gpu_alone.yaml
  measure "memory_$start" 1 --repetitions 5 --timeout 10s scenarios/parallelism/new_memory_one_gpu.yaml \
    scenarios/parallelism/new_memory_two_gpus.yaml
  measure "two_$start" 2 --repetitions 10 --timeout 10s \
    scenarios/parallelism/cpu_gpus_storage_and_communication.yaml
  measure "ranks_$start" 2 --repetitions 10 --timeout 10s scenarios/nccl/choice_through_the_host.yaml
  start=$((start + 1))
done
if wanted races; then
  echo "races: $(date +%T)"
  timeout 60 $launch -n 2 python3 "$root/hw/laboratory/oracle/races.py" > "$out/races.csv" \
    2>> "$out/log.txt" || echo "races: exit code $?"
fi
echo "ended: $(date +%T)"
