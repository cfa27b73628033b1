#!/bin/sh
# Measures registered buffers on a machine with two GPUs, in about 90 s, into OUT: the loops of registration.py, what
# allocating costs, the conformance scenario, a pass whose data are checked, and what NCCL says of a few operations.
#
#   hw/laboratory/registration/measure.sh OUT
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   MPIEXEC       default: mpirun --bind-to none
set -u
if [ $# -lt 1 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1 here=$(dirname "$0")
export FORETRACE_HW="${FORETRACE_HW:-foretrace-hw}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
launch=${MPIEXEC:-mpirun --bind-to none}
mkdir -p "$out"
run() {  # LABEL SECONDS COMMAND...
  label=$1 seconds=$2
  shift 2
  timeout "$seconds" "$@" > "$out/$label.txt" 2>&1
  echo "$label: exit code $?, $(date +%T)"
}
measured() {  # LABEL REPETITIONS FILE...
  label=$1 repetitions=$2
  shift 2
  run "$label" 40 $launch -n 2 "$FORETRACE_HW" measure "$@" -o "$out/$label" --repetitions "$repetitions" --traced 0 \
    --timeout 10s
}
python3 "$here/registration.py" write "$out/scenarios"
measured costs 20 "$here/costs.yaml" \
  "$here/../../../scenarios/conformance/a_send_to_a_registered_buffer_waits_for_its_receiver.yaml"
run loops 200 python3 "$here/registration.py" measure "$out/scenarios" "$out/loops"
# With the data check, few launches; and NCCL's own log of what it registers.
export REPETITIONS=1 CHECK=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=REG
mkdir -p "$out/few"
for operation in all_gather all_reduce sendrecv reduce_scatter; do
  sed 's/launches: 20/launches: 1/; s/times: 13/times: 9/' "$out/scenarios/${operation}_nccl.yaml" \
    > "$out/few/${operation}_nccl.yaml"
done
run checked 60 python3 "$here/registration.py" measure "$out/few" "$out/checked"
grep -h "registering buffer\|failed to IPC\|reuse buffer" "$out/checked.txt" | sed 's/0x[0-9a-f]*/ADDRESS/g' |
  sort | uniq -c | sort -rn | head -200 > "$out/registered.txt"
gzip -f "$out/checked.txt"
rm -rf "$out/few"
