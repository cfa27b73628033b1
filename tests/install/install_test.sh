#!/usr/bin/env bash
# Installs the build below a scratch directory, moves it, and uses it from an empty directory:
#   install_test.sh BUILD SOURCE SCRATCH
# With user namespaces, or as root, nothing of SOURCE is to be seen then. Prints what did not hold.
set -euo pipefail
build=$1 source=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch/empty"
rm -rf "$build/pages/foretrace"  # as ./run.sh leaves it, which builds nothing but the program
cmake --install "$build" --prefix "$scratch/first" --component program >/dev/null
mv "$scratch/first" "$scratch/moved"
if [ -x "$build/hw/foretrace-hw" ]; then
  mkdir "$scratch/harness"
  cp "$build/hw/foretrace-hw" "$scratch/harness/"
fi
for file in bin/foretrace lib/foretrace/libforetrace_flows.so; do
  # A path of its own, not the end of another one, as of share/foretrace where SOURCE is /foretrace.
  if strings "$scratch/moved/$file" | grep -P "(?<![\\w.)}/-])\\Q$source\\E(/|\$)"; then
    echo "$file has the path of its build in it"
    exit 1
  fi
done

cat >"$scratch/use.sh" <<'END'
set -eu
cd "$1/empty"
export PATH=$1/moved/bin:$PATH
data=$(foretrace list data)
case $data in */moved/share/foretrace) ;; *) echo "data from $data"; exit 1 ;; esac
foretrace --version
foretrace check scenarios/examples/prefetch_two_streams.yaml
foretrace simulate scenarios/examples/prefetch_two_streams.yaml --machine h200-nvswitch-8 -o out/run
cp "$data/reports/measured/prefetch_two_streams/measured.timeline.json" out/run/
foretrace compare out/run
foretrace assert out/run
foretrace order out/run
foretrace report out/run -o out/report.html
foretrace export out/run --to perfetto
grep -q '<svg' out/report.html
grep -q 'copy_in' out/report.html || grep -q 'memcpy_async' out/report.html
cp "$data/scenarios/architectures/llama3-8b.json" config.json
cat >step.yaml <<'STEP'
schema_version: 1
name: my_step
processes: 8
training_step:
  model: {config: config.json}
  batch: {sequence: 4096, micro: 1, global: 8}
  sharding: fsdp
  precision: {parameters: float32}
STEP
foretrace simulate step.yaml --machine h100-nvswitch-8
foretrace nccl-tests all_reduce -b 8 -e 1G -f 8 --processes 8
foretrace nccl-explain all_reduce 64MiB --env NCCL_NVLS_ENABLE=0
foretrace fit reports/measured/calibrate_copies --machine h200-nvswitch-8 --judge
test -s "$1/moved/share/man/man1/foretrace-simulate.1"
bash -n "$1/moved/share/bash-completion/completions/foretrace"
# Apart from its files: the variable that --help names.
mkdir "$1/apart"
cp "$1/moved/bin/foretrace" "$1/apart/"
simulate="simulate scenarios/examples/prefetch_two_streams.yaml --machine h200-nvswitch-8"
cd /
export FORETRACE_DATA=$1/moved/share/foretrace  # and the library that belongs to it
"$1/apart/foretrace" $simulate
mv "$1/moved/share/foretrace" "$1/elsewhere"
export FORETRACE_DATA=$1/elsewhere
"$1/apart/foretrace" list machines | grep -q '^h200-nvswitch-8'
code=0
"$1/apart/foretrace" $simulate 2>"$1/why" || code=$?
[ $code = 4 ]
grep -q '^error: cannot load libforetrace_flows.so, .*: No such file or directory$' "$1/why"
LD_LIBRARY_PATH=$1/moved/lib/foretrace "$1/apart/foretrace" $simulate
cp -r "$1/moved/lib" "$1/lib"
"$1/apart/foretrace" $simulate
"$1/apart/foretrace" --help | grep -q FORETRACE_DATA
if [ -x "$1/harness/foretrace-hw" ]; then  # needs them for calibrate only
  "$1/harness/foretrace-hw" --help >/dev/null
  code=0
  "$1/harness/foretrace-hw" measure nothing.yaml -o out || code=$?
  [ $code = 2 ]
fi
END

if unshare -rm true 2>/dev/null; then
  # The scratch directory under another name; the sources under an empty one.
  unshare -rm bash -euc '
    mkdir -p "$1/seen"
    mount -t tmpfs none /mnt
    mkdir /mnt/here
    mount --bind "$1" /mnt/here
    mount -t tmpfs none "$2"
    [ -z "$(ls -A "$2")" ]
    bash /mnt/here/use.sh /mnt/here' - "$scratch" "$source" >"$scratch/said" 2>&1 ||
    { cat "$scratch/said"; exit 1; }
  echo "with the sources out of sight"
else
  bash "$scratch/use.sh" "$scratch" >"$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }
  echo "no namespaces here: the sources were there, and not used"
fi
