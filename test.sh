#!/usr/bin/env bash
# Everything that is tested without a GPU: the sanitized build, then the optimised one.
#   ./test.sh         what continuous integration runs
#   ./test.sh --all   all tests in both builds, the second by the default compiler as users build it, and
#                     many more random programs: an hour on two cores
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh

all=OFF optimised=test
case "${1:-}" in
  "") ;;
  --all) all=ON optimised=release ;;
  *) sed -n '2,5s/^# *//p' "$0" >&2; exit 2 ;;
esac
trap print_steps EXIT

run_tests() {
  local jobs=$(($(nproc) + 1))  # some wait for the clock
  if [ "$all" = ON ]; then
    ctest --test-dir "build/$1" -LE gpu --output-on-failure --no-tests=error -j "$jobs"
  else
    ctest --preset "$1" -j "$jobs"
  fi
}

default_compiler() {
  configure release -B build/default -DFORETRACE_HW=OFF -DFORETRACE_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0
  cmake --build build/default --target reports/assets.cc sim/page_files.cc >&2
  tests/compiles.py build/default >&2
}

step "packages" install_packages "${PACKAGES[@]}" "${TEST_PACKAGES[@]}"
step "configure dev (ASan, UBSan)" configure dev -DFORETRACE_ALL_TESTS=$all \
  -DFORETRACE_HW="$([ "$all" = ON ] && echo AUTO || echo OFF)" \
  -DFORETRACE_PROGRAM_TESTED_ELSEWHERE="$([ "$all" = ON ] && echo OFF || echo ON)"
step "build dev" build dev
step "test dev" run_tests dev
# ./run.sh builds by it, the tests above and below by clang.
[ "$all" = ON ] || step "the default compiler takes foretrace" default_compiler
step "configure $optimised" configure $optimised -DFORETRACE_ALL_TESTS=$all
step "build $optimised" build $optimised
step "test $optimised" run_tests $optimised
