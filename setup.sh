# What run.sh and test.sh share; source it. Nothing here touches the system except install_packages.

# step NAME COMMAND...: runs it, and says on stderr how long it took.
step() {
  local name=$1 begin=$SECONDS_NOW
  shift
  printf '\n== %s\n' "$name" >&2
  RUNNING=$name
  "$@"
  RUNNING=
  SECONDS_NOW=$(date +%s.%N)
  STEPS+=("$(printf '%8.1f s  %s' "$(awk "BEGIN {print $SECONDS_NOW - $begin}")" "$name")")
}
RUNNING=
SECONDS_NOW=$(date +%s.%N)
STEPS=()
print_steps() {
  printf '\n== time per step\n' >&2
  printf '%s\n' "${STEPS[@]}" >&2
  if [ -n "$RUNNING" ]; then
    printf '  FAILED    %s, after %.1f s\n' "$RUNNING" \
      "$(awk "BEGIN {print $(date +%s.%N) - $SECONDS_NOW}")" >&2
  fi
}

# Debian 12 and later, Ubuntu 24.04 and later.
PACKAGES=(
  g++ cmake ninja-build ccache pkg-config
  libsimgrid-dev                                  # the engine below sim/
  libyaml-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev libexpected-dev libeigen3-dev
  libboost-dev libprotozero-dev libkainjow-mustache-dev zlib1g-dev libsqlite3-dev
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev   # tests only, from here on
  protobuf-compiler python3-jsonschema python3-yaml
)

# The harness needs these too, and CUDA; libnccl-dev is in the apt repository of whoever provides CUDA.
HARNESS_PACKAGES=(libopenmpi-dev openmpi-bin libnccl-dev)

# Tests need these too: clang compiles the sanitized half in half of the time, and warns of other things;
# mold links it in a quarter.
TEST_PACKAGES=(clang libclang-rt-dev mold)

# install_packages PACKAGE...: installs what is missing with apt, as root at once, otherwise with sudo when a terminal says yes.
# Fails with the list and the command when nobody answers. Says what to do where there is no apt.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian or Ubuntu: what is needed there goes by these names: $*" >&2
    return 0
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "all $# packages are installed" >&2
    return 0
  fi
  echo "missing, and needed: ${missing[*]}" >&2
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    local command="sudo apt-get install --no-install-recommends ${missing[*]}"
    local answer=
    if [ -t 0 ] && [ -t 2 ]; then read -r -p "install them with sudo now? [y/N] " answer; fi
    if [[ $answer != [yY]* ]]; then
      echo "nothing is installed; this installs them:" >&2
      echo "  $command" >&2
      return 1
    fi
    root=(sudo)
  fi
  "${root[@]}" apt-get update -q >&2
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# packages_of FILE...: the packages that have the shared libraries of these programs, one a line; what belongs to no
# package, or is not there, is named on stderr.
packages_of() {
  local libraries known path real
  libraries=$(ldd "$@" | sed -nE 's/^\s+(\S+) => (\/\S+|not found).*/\2/p' | sort -u)
  # As packages name them, which may have /lib for what is in /usr/lib; asked at once, since that reads all their lists.
  known=$(for path in $libraries; do echo "$path" "$(realpath "$path")" "/usr$path" "${path#/usr}"; done |
    { xargs dpkg-query -S 2>/dev/null || true; } | sed -E 's/^([^:]+).*: (\/usr)?(\/.*)$/\3 \1/')
  for path in $libraries; do
    real=$(realpath "$path")
    awk -v a="${path#/usr}" -v b="${real#/usr}" '$1 == a || $1 == b {print $2; found = 1} END {exit !found}' <<<"$known" ||
      echo "$path is of no package" >&2
  done | sort -u
}

# Otherwise it caches nothing that precompiled headers are in.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# configure PRESET [OPTION...], build PRESET [TARGET...]: with ccache where it is installed.
configure() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$preset" "${launcher[@]}" "$@" >&2
}
build() {
  local preset=$1
  shift
  cmake --build --preset "$preset" ${1:+--target "$@"} >&2
}
