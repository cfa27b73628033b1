#!/bin/sh
# pack_counts.sh BUILD FILE.tar.xz: what counts.py runs, with its shared libraries, for another machine of this kind whose glibc is
# as new. BUILD is a sanitized build of the targets counted_programs and foretrace_flows, best with
#   cmake --preset dev -B BUILD -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DFORETRACE_TESTS_LEVEL=-O1
# There: tar xJf FILE.tar.xz -C /tmp/c; LD_LIBRARY_PATH=/tmp/c/counts/lib tests/hostile/counts.py /tmp/c/counts /tmp/c/scratch
set -eu
build=$1
file=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/counts/lib"
flows=$(find "$build/sim" -name 'libforetrace_flows.so*' -type f)
strip --strip-debug "$build/tests/hostile/counted_programs" -o "$scratch/counts/counted_programs"
strip --strip-debug "$flows" -o "$scratch/counts/lib/$(basename "$flows")"
for name in foretrace many_rows simulator_property_test fuzz_readers many_commands; do
  ln -s counted_programs "$scratch/counts/$name"
done
# All but what comes with glibc, which the other machine's loader belongs to.
ldd "$build/tests/hostile/counted_programs" "$flows" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux-x86-64)\.so' | while read -r library; do
  cp -L "$library" "$scratch/counts/lib/"
done
tar -C "$scratch" --sort=name --owner=0 --group=0 -c counts | xz -T2 -6 > "$file"
ls -l "$file"
