#!/usr/bin/env bash
# hardened.sh PROGRAM: position independent, relocations read-only from the start, stack and string
# functions checked.
set -euo pipefail
wrong=0
needs() {  # WHAT PATTERN TEXT
  grep -Eq "$2" <<<"$3" || { echo "$1: nothing like '$2'"; wrong=1; }
}
header=$(readelf -hW "$1")
segments=$(readelf -lW "$1")
dynamic=$(readelf -dW "$1")
symbols=$(readelf -sW --dyn-syms "$1")
needs "position independent" 'Type: +DYN' "$header"
needs "read-only relocations" 'GNU_RELRO' "$segments"
needs "bound at the start" 'BIND_NOW|FLAGS.*NOW' "$dynamic"
needs "no executable stack" 'GNU_STACK .* RW ' "$segments"
needs "stack protector" '__stack_chk_fail' "$symbols"
needs "fortified functions" '__[a-z]+_chk' "$symbols"
exit $wrong
