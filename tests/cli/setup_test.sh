#!/usr/bin/env bash
# setup_test.sh SETUP: what install_packages does when packages are missing and nobody answers. The
# programs that it would call are stand-ins here.
set -euo pipefail
stand_ins=$(mktemp -d)
trap 'rm -rf "$stand_ins"' EXIT
printf '#!/bin/sh\necho "not-installed"\n' >"$stand_ins/dpkg-query"
printf '#!/bin/sh\necho "called: sudo $*"\n' >"$stand_ins/sudo"
printf '#!/bin/sh\necho "called: apt-get $*"\n' >"$stand_ins/apt-get"
printf '#!/bin/sh\n[ "$1" = -u ] && echo "${FAKE_ID:-1000}"\n' >"$stand_ins/id"
chmod +x "$stand_ins"/*
export PATH="$stand_ins:$PATH"
source "$1"

fail() { echo "$1"; exit 1; }
said=$(install_packages "${PACKAGES[@]}" 2>&1 </dev/null) && fail "it went on without the packages"
grep -q "libsimgrid-dev" <<<"$said" || fail "no list of what is missing: $said"
grep -q "  sudo apt-get install --no-install-recommends" <<<"$said" || fail "no command: $said"
grep -q "called:" <<<"$said" && fail "it called for root without being asked: $said"
said=$(FAKE_ID=0 install_packages "${PACKAGES[@]}" 2>&1 </dev/null) || fail "as root it did not install: $said"
grep -q "called: apt-get install -y" <<<"$said" || fail "as root it did not install: $said"
grep -q "called: sudo" <<<"$said" && fail "as root it called sudo: $said"
exit 0
