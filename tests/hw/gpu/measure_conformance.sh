#!/bin/sh
# Measures the scenarios of a directory on this machine's GPUs, as few process launches as possible:
# one per (processes, devices, environment), and one for each scenario that ends its processes (a
# fault, a failure, a hang), where exit code 1 is the answer. Prints every start's exit code. Exits
# with 0 when all answered, with 3 when this machine has too few GPUs for some, else with the first
# code that was no answer.
#
#   tests/hw/gpu/measure_conformance.sh OUT [DIR]     DIR: scenarios/conformance
#   FORETRACE_HW  the harness to run; default: foretrace-hw
#   FORETRACE     judges each result afterwards; default: foretrace, if there is one
#   MPIEXEC       default: mpirun
#   TIMEOUT       of the starts that end their processes; default: 3s
set -u

if [ $# -lt 1 ]; then
  sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1
dir=${2:-$(dirname "$0")/../../../scenarios/conformance}
harness=${FORETRACE_HW:-foretrace-hw}
launcher=${MPIEXEC:-mpirun --bind-to none}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A line per start: "together" or "alone", processes, files.
plan=$(python3 - "$dir" <<'PYTHON'
import pathlib
import re
import sys

groups, alone = {}, []
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    text = re.sub(r"(^|\s)#.*", r"\1", file.read_text())
    parameters = dict(re.findall(r"[{,\s](\w+):\s*(\d+)\s*[,}\n]", " ".join(
        re.findall(r"(?m)^parameters:(.*(?:\n .*)*)", text)) + "\n"))

    def key(name, default):
        found = re.search(rf"(?m)^{name}:\s*(.*(?:\n +.*)*)", text)
        value = " ".join(found.group(1).split()) if found else default
        return parameters.get(value[1:], value) if value.startswith("$") else value

    processes = key("processes", "1")
    ends = (re.match("fault|fails", file.stem) or re.search(r"\bfault:", text)
            or file.resolve().parent.name == "hangs")
    if ends or key("warmup", "1") == "0":
        alone.append(("ends" if ends else "alone", processes, [file]))
    else:
        groups.setdefault((processes, key("devices", "1"), key("environment", "")), []).append(file)
starts = [("together", group[0], files) for group, files in sorted(groups.items())] + alone
for kind, processes, files in starts:
    print(kind, processes, *files)
PYTHON
) || exit 2

worst=0
note() {
  if [ "$worst" -eq 0 ] || { [ "$worst" -eq 3 ] && [ "$1" -ne 0 ]; }; then worst=$1; fi
}
while read -r kind processes files; do
  timeout=
  [ "$kind" = ends ] && timeout="--timeout ${TIMEOUT:-3s}"
  # shellcheck disable=SC2086  # names of scenarios have no spaces
  $launcher -n "$processes" "$harness" measure $files -o "$out" \
    --repetitions 10 --force $timeout </dev/null
  code=$?
  echo "exit code $code: $kind, $processes process(es): $(basename -a -s .yaml $files | tr '\n' ' ')"
  [ "$kind" = ends ] && [ $code -eq 1 ] && code=0
  note $code
done <<EOT
$plan
EOT

judge=${FORETRACE:-$(command -v foretrace)}
if [ -n "$judge" ]; then
  for run in "$out"/*/; do
    [ -f "$run/measured.timeline.json" ] || continue
    "$judge" assert "$run"
    note $?
  done
fi
exit $worst
