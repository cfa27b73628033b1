#!/usr/bin/env bash
# Builds the Dockerfile's two stages without Docker, in two roots, and predicts a scenario in the second:
#   docker_root.sh BUILD_ROOT RUN_ROOT
# Both are roots that `debootstrap --variant=minbase` made, and are changed. Needs root, and the network for apt.
#   docker_root.sh --check [FORETRACE...]
# Runs the commands with stand-ins for what they call: none may lack its arguments, every package must be known to
# apt (where it has lists), and every shared library of FORETRACE, its program and modules, be of a package that the
# second stage installs. HARNESS=ON builds the harness, too (default: OFF in roots, ON for --check).
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "$1"; exit 1; }

# "STAGE INSTRUCTION REST" a line; lines that end in \ are joined.
instructions() {
  sed -e :a -e '/\\$/N; s/\\\n//; ta' "$here/Dockerfile" | grep -v '^#' | grep . |
    awk '$1 == "FROM" {stage++} {print stage + 0, $0}'
}

# run_stages RUN COPY: calls RUN STAGE COMMAND and COPY STAGE SOURCES... TARGET as the Dockerfile says.
run_stages() {
  local stage instruction rest
  while read -r stage instruction rest; do
    case $instruction in
      RUN) "$1" "$stage" "$rest" ;;
      COPY) "$2" "$stage" $rest ;;
      FROM | ARG | WORKDIR | CMD) ;;
      *) fail "Dockerfile: $0 does not know $instruction" ;;
    esac
  done < <(instructions)
}

in_roots() {
  local roots=("" "$1" "$2") root
  export DEBIAN_FRONTEND=noninteractive HARNESS=${HARNESS:-OFF}
  for root in "$@"; do
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    mount --bind /proc "$root/proc"
    mount --bind /dev "$root/dev"
  done
  trap 'umount "${roots[@]:1}"/{proc,dev} 2>/dev/null || for r in "${roots[@]:1}"; do umount "$r/proc" "$r/dev"; done' EXIT
  run() {
    echo "== stage $1: $2" >&2
    chroot "${roots[$1]}" sh -c "$2" </dev/null
  }
  copy() {
    local root=${roots[$1]}
    case $2 in
      --from=build) mkdir -p "$root$4" && cp -a "${roots[1]}$3/." "$root$4/" ;;
      .) mkdir -p "$root$3" && git -C "$here" ls-files -z | tar -C "$here" --null -T - -cf - | tar -C "$root$3" -xf - ;;
      *) mkdir -p "$(dirname "$root$3")" && cp "$here/$2" "$root$3" ;;
    esac
  }
  run_stages run copy
  chroot "$2" sh -euc 'mkdir -p /work && cd /work && foretrace --help >/dev/null && foretrace list data &&
    foretrace simulate scenarios/examples/prefetch_two_streams.yaml --machine h200-nvswitch-8 -o out/run &&
    foretrace report out/run -o out/report.html'
  if [ "$HARNESS" = ON ]; then chroot "$2" foretrace-hw --help >/dev/null; fi
  echo "both stages of the Dockerfile ran, and what they made predicts"
}

check() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  mkdir "$scratch/bin" "$scratch/program"
  printf '#!/bin/sh\necho not-installed\n' >"$scratch/bin/dpkg-query"
  printf '#!/bin/sh\necho 0\n' >"$scratch/bin/id"
  for program in apt-get cmake ldd ln; do
    printf '#!/bin/sh\necho "%s $*" >>"$RECORD"\n' "$program" >"$scratch/bin/$program"
  done
  chmod +x "$scratch/bin"/*
  export HARNESS=${HARNESS:-ON}
  # What the first stage would write for the second: by the real tools.
  source "$here/setup.sh"
  if [ $# -gt 0 ]; then packages_of "$@" >"$scratch/packages"; else echo libc6 >"$scratch/packages"; fi
  local known_copies=" /opt/foretrace "
  run() {
    local command=${2//\/source/$here}
    command=${command//\/opt\/foretrace\/setup.sh/$here/setup.sh}
    command=${command//\/opt\/foretrace\/packages/$scratch/packages.$1}
    if [ "$1" = 2 ]; then cp "$scratch/packages" "$scratch/packages.2"; fi
    RECORD=$scratch/called.$1 PATH="$scratch/bin:$PATH" sh -c "$command" >"$scratch/said" 2>&1 ||
      fail "stage $1: $2: $(cat "$scratch/said")"
  }
  copy() {
    case $2 in
      --from=build) [[ $known_copies == *" $3 "* ]] || fail "Dockerfile copies $3, which nothing makes" ;;
      *) [ -e "$here/$2" ] || fail "Dockerfile copies $2, which is not there" ;;
    esac
  }
  run_stages run copy
  local installed_1 installed_2 package library
  installed() { sed -n 's/^apt-get install -y -q --no-install-recommends //p' "$scratch/called.$1" | tr ' ' '\n' | grep . || true; }
  installed_1=$(installed 1)
  installed_2=$(installed 2)
  [ -n "$installed_1" ] || fail "the first stage installs nothing"
  [ -n "$installed_2" ] || fail "the second stage installs nothing"
  for package in "${PACKAGES[@]}" $([ "$HARNESS" = ON ] && echo "${HARNESS_PACKAGES[@]}"); do
    grep -qx "$package" <<<"$installed_1" || fail "the first stage does not install $package"
  done
  for package in $(cat "$scratch/packages"); do
    grep -qx "$package" <<<"$installed_2" || fail "the second stage does not install $package"
  done
  local names
  names=$(apt-cache pkgnames)
  if grep -qx libnccl-dev <<<"$names" || grep -qx openmpi-bin <<<"$names"; then
    for package in $installed_1 $installed_2; do
      grep -qx "$package" <<<"$names" ||
        [ "$package" = libnccl-dev ] ||  # in the repository of whoever provides CUDA
        fail "apt knows no package $package"
    done
  else
    echo "apt has no lists here: the packages' names are not checked"
  fi
  # By the list of each package, not by who has the file.
  [ $# -eq 0 ] && return
  local files
  files=$(for package in $installed_2; do dpkg -L "$package"; done | xargs -n1 basename | sort -u)
  for library in $(ldd "$@" | sed -nE 's/^\s+(\S+) => .*/\1/p' | sort -u); do
    grep -qxF "$library" <<<"$files" || fail "the second stage has no package with $library"
  done
}

case ${1:-} in
  --check) shift; check "$@" ;;
  *) [ $# = 2 ] || { sed -n '2,9s/^# *//p' "$0" >&2; exit 2; }; in_roots "$@" ;;
esac
