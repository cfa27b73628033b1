#!/bin/sh
# Asks NCCL on this machine what it charges and what it chooses, for its defaults and for forced
# protocols and algorithms, and writes OUT/nccl_choice.csv: the table that
# tests/models/nccl/choice_test.cc holds the model against. Logs stay beside it, one per setting.
# Exits with the first failure of the program, after trying the other settings.
#
#   hw/laboratory/oracle/nccl_oracle.sh OUT [SETTINGS...]   SETTINGS: e.g. "NCCL_PROTO=LL NCCL_NVLS_ENABLE=0"
#   NCCL_ORACLE  the program; default: nccl_oracle
#   RANKS        default: 2 4 8
#   LARGEST      bytes of the largest operation; default: 4 GiB
set -u

if [ $# -lt 1 ]; then
  sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1
shift
program=${NCCL_ORACLE:-nccl_oracle}
if [ $# -eq 0 ]; then
  set -- "" NCCL_PROTO=LL NCCL_PROTO=LL128 NCCL_PROTO=Simple NCCL_ALGO=Ring NCCL_ALGO=Tree
  for setting in "$@"; do
    set -- "$@" "NCCL_NVLS_ENABLE=0${setting:+ $setting}"
    shift
  done
fi
mkdir -p "$out" || exit 4

worst=0
for setting in "$@"; do
  name=$(printf '%s' "$setting" | tr -c 'A-Za-z0-9_=.-' '_')
  # shellcheck disable=SC2086  # a setting is several words
  env $setting NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV,TUNING \
    NCCL_DEBUG_FILE="$out/$name.log" \
    "$program" --run --half-steps --largest "${LARGEST:-4294967296}" ${RANKS:-2 4 8} \
    >"$out/$name.csv"
  code=$?
  echo "exit code $code: $setting"
  [ $worst -eq 0 ] && worst=$code
done

python3 - "$out" <<'PYTHON' || exit 4
import collections
import csv
import pathlib
import re
import sys

out = pathlib.Path(sys.argv[1])
line = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
functions = {"AllReduce": "all_reduce", "AllGather": "all_gather", "Broadcast": "broadcast",
             "ReduceScatter": "reduce_scatter", "Reduce": "reduce"}
rows = []
for table in sorted(out.glob("NCCL_*.csv")):
    with open(table, newline="") as file:
        prices = list(csv.DictReader(file))
    # Operations ran in the table's order, and NCCL logs each once; a refused one it does not log.
    chosen = collections.deque()
    for text in table.with_suffix(".log").read_text().splitlines():
        found = line.search(text)
        if found and found[1] in functions:
            chosen.append(found)
    for row in prices:
        row.update(algorithm="none", protocol="none", channels=0)
        if row["estimated_us"]:
            share = row["op"] in ("all_gather", "reduce_scatter")
            size = int(row["bytes"]) // (int(row["ranks"]) if share else 1)
            if not chosen:
                sys.exit(f"{table.name}: NCCL logged fewer choices than it gave prices")
            found = chosen.popleft()
            if (functions[found[1]], int(found[2])) != (row["op"], size):
                sys.exit(f"{table.name}: expected the choice of {row}, found '{found[0]}'")
            row.update(algorithm=found[3], protocol=found[4],
                       channels=int(found[6]) - int(found[5]) + 1)
        rows.append(row)
    if chosen:
        sys.exit(f"{table.name}: NCCL logged {len(chosen)} choices more than it gave prices")
if not rows:
    sys.exit("no prices")
with open(out / "nccl_choice.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
print(f"{len(rows)} rows in {out / 'nccl_choice.csv'}")
PYTHON
exit $worst
