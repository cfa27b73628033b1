#!/usr/bin/env bash
# Fuzzes the readers for longer, sanitized:
#   tests/fuzz/fuzz.sh [RUNS [READER...]]          a million runs of every reader, one after the other
# Builds build/fuzz (with ccache where it is installed). With clang and CXX=clang++, libFuzzer fuzzes;
# with any other compiler random_main.cc does, guided by the edges that it reaches. What ends a reader
# early stays in build/fuzz/READER.last: mend it, and put it into tests/fuzz/corpus/READER.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-1000000}
shift || true
readers=("$@")
[ ${#readers[@]} -gt 0 ] ||
  readers=(nccl_tests_csv nccl_tests_log products kineto environment machine timeline scenario arguments
    training_steps published_steps figures blind_round sweep sweep_rows config nsight marked_document
    calls kernel_table host part composition transfer transfer_judge serving chakra simai)

sanitize=address,undefined
target=fuzz_readers
guide=(-DCMAKE_PROJECT_foretrace_INCLUDE="$PWD/tests/fuzz/coverage.cmake")
if "${CXX:-c++}" --version | grep -q clang; then
  sanitize=fuzzer-no-link,$sanitize target=libfuzzer_readers guide=()
fi
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
  -DFORETRACE_SANITIZE="$sanitize" -DFORETRACE_HW=OFF -DCMAKE_UNITY_BUILD=ON \
  "${guide[@]}" "${launcher[@]}" >&2
cmake --build build/fuzz --target "$target" >&2

program=build/fuzz/tests/fuzz/$target
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=0
if [ -d /dev/shm ]; then export TMPDIR=/dev/shm; fi  # of readers that take a file
for reader in "${readers[@]}"; do
  longest=1024  # bytes: most of what breaks a reader is short, and a YAML of 4 KiB takes four times as long
  seeds=("tests/fuzz/corpus/$reader")
  export FORETRACE_MACHINES=$PWD/tests/fuzz/machines  # a base that is read in no time
  case $reader in
    scenario) seeds+=(scenarios tests/scenarios/data) ;;
    machine) seeds+=(models/machines) ;;
    config) seeds+=(scenarios/architectures) ;;
    transfer_judge) unset FORETRACE_MACHINES; longest=8192 ;;  # a GPU is learned from by 50 rows
    part | composition | transfer) unset FORETRACE_MACHINES ;;  # the parts are there
    nsight) longest=12288 ;;  # the smallest database with its tables has 8 KiB
  esac
  if [ "$target" = fuzz_readers ]; then
    "$program" "$reader" --runs "$runs" --longest "$longest" --last "build/fuzz/$reader.last" "${seeds[@]}"
  else
    mkdir -p "build/fuzz/kept/$reader"
    FORETRACE_FUZZ=$reader "$program" -runs="$runs" -timeout=20 -rss_limit_mb=2048 -max_len="$longest" -entropic=0 \
      -dict=tests/fuzz/scenario.dict -artifact_prefix="build/fuzz/$reader." -print_final_stats=1 \
      "build/fuzz/kept/$reader" "${seeds[@]}" 2>&1 | tee "build/fuzz/$reader.log"
  fi
done
