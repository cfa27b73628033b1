#!/usr/bin/env bash
# The packages that need no compiler, as far as a bare machine can be played here, or in real roots:
#   package_test.sh BUILD SOURCE SCRATCH COMPILER   what release_packages stages, in a root that has nothing else; its wheel
#   package_test.sh --roots PACKAGES ROOT...        tarball, Debian package, wheel in each root, with seconds; needs root
# A root is a folder that debootstrap made, or one with busybox alone. Without network. Exits with 77 where nothing can be tried.
set -euo pipefail

say() { printf '%s\n' "$*"; }
fail() { say "$*"; exit 1; }
ask="simulate scenarios/examples/prefetch_two_streams.yaml --machine h200-nvswitch-8"
expected="221.0 ms"

# Nothing in `folder` needs a file from outside: each library that an ELF file names lies there.
check_closed() {
  local folder=$1 file name
  for file in "$folder"/*; do
    case $file in */libforetrace_cuda.so | */libforetrace_nv*.so | */libforetrace_timer.so) continue ;; esac  # loaded by the user's Python
    for name in $(readelf -dW "$file" 2>/dev/null | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'); do
      [ -e "$folder/$name" ] || fail "$file needs $name, which is not beside it"
    done
  done
}

staged() {
  local build=$1 source=$2 scratch=$3 compiler=$4
  rm -rf "$scratch" && mkdir -p "$scratch"
  python3 "$source/cmake/release/packages.py" --build "$build" --cmake cmake --cpack cpack --compiler "$compiler" \
    --version 0.0.1 -o "$scratch/packages" --quick >"$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }
  local stage=$scratch/packages/foretrace
  check_closed "$stage/lib/foretrace"
  ! readelf -lW "$stage/bin/foretrace" | grep -q INTERP || fail "the launcher needs a loader"
  grep -q 'libsimgrid.*LGPL-2.1' "$stage/share/doc/foretrace/licences/LICENCES.md"
  ln -s "$stage/bin/foretrace" "$scratch/linked"
  (cd / && env -i "$scratch/linked" $ask) | grep -q "$expected" || fail "started by a link, without environment"
  (cd / && env -i LD_PRELOAD=/nonexistent.so LD_LIBRARY_PATH=/nonexistent "$stage/bin/foretrace" $ask 2>&1) >"$scratch/said"
  grep -q "$expected" "$scratch/said" || fail "with LD_PRELOAD"
  mkdir "$scratch/a:b" && cp -r "$stage/bin" "$scratch/a:b" # the loader would look in two folders, b/lib one of them
  ("$scratch/a:b/bin/foretrace" $ask 2>&1 || true) | grep -q "does not start from a folder with ':'" || fail "from a folder with ':'"
  "$stage/bin/foretrace" simulate nothing.yaml >/dev/null 2>&1 && fail "a missing file is no error"
  # A root with our files and nothing else: no libc, no shell, no /proc.
  if unshare -r true 2>/dev/null; then
    unshare -r chroot "$stage" /bin/foretrace $ask | grep -q "$expected" || fail "in an empty root"
    unshare -r chroot "$stage" /bin/foretrace nccl-tests all_reduce -b 8 -e 1M -f 8 --processes 8 2>/dev/null | grep -q busbw || fail "nccl-tests in an empty root"
  else
    say "no namespaces here: not tried in an empty root"
  fi
  # The wheel, where pip would put its files; its entry point.
  local wheel=("$scratch"/packages/*.whl)
  python3 - "${wheel[0]}" "$scratch/site" <<'END'
import base64, csv, hashlib, io, os, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = set(wheel.namelist())
record = next(name for name in names if name.endswith("/RECORD"))
for name, digest, size in csv.reader(io.StringIO(wheel.read(record).decode())):
    if name != record:
        data = wheel.read(name)
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() and int(size) == len(data), name
    names.discard(name)
assert not names, names
for entry in wheel.infolist():
    path = wheel.extract(entry, sys.argv[2])
    os.chmod(path, entry.external_attr >> 16 & 0o777 or 0o644)
END
  (cd / && PYTHONPATH=$scratch/site PATH=/usr/bin:/bin "$(python3 -c 'import sys; print(sys.executable)')" -c '
import sys, foretrace.program
sys.argv = ["foretrace", *sys.argv[1:]]
sys.exit(foretrace.program.main())' $ask) | grep -q "$expected" || fail "the wheel's program"
  say "the staged program answers without the system's libraries"
}

in_roots() {
  local packages=$1 root begin tarball deb wheel name
  shift
  tarball=$(echo "$packages"/*.tar.gz) deb=$(echo "$packages"/*.deb) wheel=$(echo "$packages"/*.whl)
  timed() {
    begin=$(date +%s.%N)
    "$@" >"$packages/said" 2>&1 || { cat "$packages/said"; fail "$*"; }
    printf '  %6.2f s  %s\n' "$(awk "BEGIN {print $(date +%s.%N) - $begin}")" "$said"
    if [ -n "${look:-}" ]; then grep -q "$look" "$packages/said" || { cat "$packages/said"; fail "no answer"; }; fi
  }
  export PIP_ROOT_USER_ACTION=ignore PIP_BREAK_SYSTEM_PACKAGES=1
  # A package that has a /bin of its own would take the system's away when it goes.
  if tar -tf <(dpkg-deb --fsys-tarfile "$deb") | grep -vE '^\./(usr/.*)?$'; then fail "$deb has files outside of /usr"; fi
  for root in "$@"; do
    say "== $root: $(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release" 2>/dev/null || true)"
    rm -rf "$root/opt/foretrace" && mkdir -p "$root/opt/foretrace" "$root/tmp"
    cp "$tarball" "$root/opt/foretrace.tar.gz"
    look= said="tar -xzf" timed chroot "$root" /bin/sh -c 'cd /opt/foretrace && tar -xzf ../foretrace.tar.gz'
    name=$(ls "$root/opt/foretrace")
    look=$expected said="first answer" timed chroot "$root" "/opt/foretrace/$name/bin/foretrace" $ask
    look=tokens said="a training step" timed chroot "$root" "/opt/foretrace/$name/bin/foretrace" simulate scenarios/training/llama_step_fsdp.yaml --machine h100-nvswitch-8
    rm -rf "$root/opt/foretrace"
    if [ -x "$root/usr/bin/dpkg" ]; then
      cp "$deb" "$root/opt/foretrace.deb"
      look= said="dpkg -i" timed chroot "$root" dpkg -i --force-unsafe-io /opt/foretrace.deb
      look=$expected said="answer of the package" timed chroot "$root" foretrace $ask
      look= said="dpkg -P" timed chroot "$root" dpkg -P foretrace
      chroot "$root" /bin/sh -c true || fail "the package took /bin/sh with it"
    fi
    if chroot "$root" python3 -c 'import sys, pip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
      cp "$wheel" "$root/opt/"
      look= said="pip install" timed chroot "$root" python3 -m pip install --no-index "/opt/$(basename "$wheel")"
      look=$expected said="answer of the wheel" timed chroot "$root" foretrace $ask
      look= said="pip uninstall" timed chroot "$root" python3 -m pip uninstall -y foretrace
    fi
  done
}

# The image that Containerfile makes, by its own instructions: FROM scratch, ADD, ENTRYPOINT.
in_image() {
  local packages=$1 image added entry
  image=$(mktemp -d "$packages/image.XXXXXX")
  grep -qx 'FROM scratch' "$packages/Containerfile" || fail "Containerfile is not from scratch"
  added=$(sed -n 's|^ADD \(.*\) /$|\1|p' "$packages/Containerfile")
  entry=$(sed -n 's|^ENTRYPOINT \["\(.*\)"\]$|\1|p' "$packages/Containerfile")
  tar -C "$image" -xzf "$packages/$added" --no-same-owner
  chroot "$image" "$entry" $ask >"$packages/said" || { rm -rf "$image"; fail "the image's entry point"; }
  rm -rf "$image"
  grep -q "$expected" "$packages/said" || fail "the image's answer"
  say "== Containerfile: its image answers"
}

case ${1:-} in
  --roots)
    shift
    [ $# -ge 2 ] && [ "$(id -u)" = 0 ] || { say "skipped: needs root, and roots to try it in"; exit 77; }
    in_image "$1"
    in_roots "$@"
    ;;
  *) [ $# = 4 ] || { sed -n '2,6s/^# *//p' "$0" >&2; exit 2; }; staged "$@" ;;
esac
