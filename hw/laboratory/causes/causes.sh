#!/bin/sh
# Measures what stands behind the errors of a blind round on a machine with two GPUs: the scenarios of
# this folder in three process launches, and programs of the round with spans. Writes into OUT.
#
#   hw/laboratory/causes/causes.sh ROUND OUT      ROUND: reports/blind/round-1
#   FILES         scenarios of this folder; default: all
#   LIST          of the programs; default: with_spans.txt, that of round 1
#   ONLY=programs nothing but the spans of the programs
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   MPIEXEC       default: mpirun --bind-to none
set -u
if [ $# -lt 2 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
round=$1 out=$2 here=$(dirname "$0")
if [ -e "$round.tar.gz" ]; then  # recorded: its programs are in an archive
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar -xzf "$round.tar.gz" -C "$unpacked"
  round=$unpacked/$(basename "$round")
fi
harness=${FORETRACE_HW:-foretrace-hw} launch=${MPIEXEC:-mpirun --bind-to none}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$out"

measure() {  # PROCESSES REPETITIONS TRACED LABEL FILE...
  processes=$1 repetitions=$2 traced=$3 label=$4
  shift 4
  echo "$label: $# files, $processes processes, $(date +%T)"
  timeout 100 $launch -n "$processes" "$harness" measure "$@" -o "$out/$label" --no-check \
    --repetitions "$repetitions" --traced "$traced" --timeout 10s --start-label "$label" \
    >> "$out/log.txt" 2>&1 || echo "$label: exit code $?"
}

chosen() {  # PROCESSES: files of programs whose spans are wanted
  while read -r processes name; do
    [ "$processes" = "$1" ] && find "$round/programs" -name "$name.yaml"
  done < "$here/${LIST:-with_spans.txt}"
}

files=${FILES:-$(cd "$here" && ls ./*.yaml)}
causes=$(cd "$here" && grep -L "^processes: 2" $files | sed "s|^|$here/|")
causes_of_two=$(cd "$here" && grep -l "^processes: 2" $files | sed "s|^|$here/|")
calls="$here/../../../scenarios/calibration/host_calls.yaml $here/../../../scenarios/calibration/driver.yaml"
measure 1 3 1 programs_1 $(chosen 1)
measure 2 3 1 programs_2 $(chosen 2)
[ "${ONLY:-}" != programs ] || exit 0
measure 1 5 1 causes_1 $causes $calls
[ -z "$causes_of_two" ] || measure 2 5 1 causes_of_two_1 $causes_of_two
for start in 2 3; do
  measure 1 5 0 "causes_$start" $causes $calls
  [ -z "$causes_of_two" ] || measure 2 5 0 "causes_of_two_$start" $causes_of_two
done
