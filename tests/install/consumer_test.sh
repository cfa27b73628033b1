#!/usr/bin/env bash
# Builds tests/install/consumer with the installed library, and asks it for a prediction:
#   consumer_test.sh BUILD SOURCE SCRATCH
set -euo pipefail
build=$1 source=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
for component in program library; do
  cmake --install "$build" --prefix "$scratch/prefix" --component "$component" >/dev/null
done
cp -r "$source/tests/install/consumer" "$scratch/consumer"
cmake -S "$scratch/consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/build" >/dev/null
if grep -rlP "(?<![\\w.)}/-])\\Q$source\\E(/|\$)" "$scratch/prefix/lib/cmake"; then
  echo "the package names the path of the build"
  exit 1
fi
scenario=$source/scenarios/examples/prefetch_two_streams.yaml
end=$("$scratch/build/consumer" "$scenario" "$scratch/prefix/share/foretrace/models/machines/h200-nvswitch-8.yaml")
"$scratch/prefix/bin/foretrace" simulate "$scenario" --machine h200-nvswitch-8 -o "$scratch/run" >/dev/null
expected=$(python3 -c '
import json, sys
timeline = json.load(open(sys.argv[1]))
end = timeline["span_columns"].index("end_ns")
print(max(span[end] for span in timeline["spans"]))' "$scratch/run/predicted.timeline.json")
[ "$end" = "$expected" ] || { echo "the library says $end ns, the program $expected ns"; exit 1; }
