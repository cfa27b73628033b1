#!/usr/bin/env bash
# Everything that is tested without a GPU: the sanitized build, then the optimised one.
set -euo pipefail
cd "$(dirname "$0")"
source ./setup.sh
trap print_steps EXIT

step "packages" install_packages
step "configure dev (ASan, UBSan)" configure dev
step "build dev" build dev
step "test dev" ctest --preset dev -j "$(nproc)"
step "configure release" configure release
step "build release" build release
step "test release" ctest --preset release -j "$(nproc)"
