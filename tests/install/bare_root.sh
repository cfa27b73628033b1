#!/usr/bin/env bash
# Uses the package, then the tarball, in a root that has nothing else, as somebody does who has no sources:
#   bare_root.sh ROOT FORETRACE.deb FORETRACE.tar.gz
# ROOT is one that `debootstrap --variant=minbase` made, and is changed. Needs root and the network, so that
# ./test.sh does not run it. Every command of the top README's console blocks is run there; the first that fails ends it.
set -euo pipefail
[ $# = 3 ] || { sed -n '2,5s/^# *//p' "$0" >&2; exit 2; }
root=$1 package=$2 tarball=$3
readme=$(dirname "$0")/../../README.md
export DEBIAN_FRONTEND=noninteractive

cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$package" "$root/foretrace.deb"
cp "$tarball" "$root/foretrace.tar.gz"
mount --bind /proc "$root/proc"
trap 'umount "$root/proc"' EXIT
chroot "$root" apt-get -qq update
chroot "$root" sh -c 'apt-get -qq install --no-install-recommends -y /foretrace.deb >/tmp/apt.log 2>&1' ||
  { tail -5 "$root/tmp/apt.log"; exit 1; }

mkdir -p "$root/walk"
awk '/^```yaml$/ {getline; if ($0 ~ /^# [^ ]*\.yaml:/) {name = substr($2, 1, length($2) - 1); inside = 1}}
     /^```$/ {inside = 0} inside {print > (directory "/" name)}' directory="$root/walk" "$readme"
{
  echo 'set -eu; cd /walk; rm -rf out; data=$(foretrace list data); echo "files from $data"'
  echo 'ln -sfn "$data/scenarios" scenarios; ln -sfn "$data/reports" reports'
  awk '/^```console$/ {inside = 1; next} /^```$/ {inside = 0}
       inside && /^\$ / {sub(/^\$ /, ""); print "echo \"+ " $0 "\"; " $0 " >/walk/said 2>&1 || { code=$?; tail -5 /walk/said; exit $code; }"}' "$readme"
} >"$root/walk/walk.sh"
walk() {
  chroot "$root" env PATH="$1" sh /walk/walk.sh
}

echo "== the package"
walk /usr/bin:/bin
echo "== the tarball"
chroot "$root" dpkg --purge foretrace >/dev/null
mkdir -p "$root/opt/foretrace"
tar -C "$root/opt/foretrace" --strip-components 1 -xzf "$root/foretrace.tar.gz"
walk /opt/foretrace/bin:/usr/bin:/bin
echo "all commands of README.md ran, from the package and from the tarball"
