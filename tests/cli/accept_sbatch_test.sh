#!/usr/bin/env bash
# accept.sbatch on three nodes that stand-ins for Slurm, nccl-tests and nvbandwidth play:
#   accept_sbatch_test.sh FORETRACE SCRIPT SCRATCH
# Prints what did not hold.
set -euo pipefail
foretrace=$1 script=$2 scratch=$3
rm -rf "$scratch" && mkdir -p "$scratch/bin"
export PATH=$scratch/bin:$PATH SLURM_JOB_NODELIST=n MACHINE=8xH100+ib-ndr:3
ln -s "$foretrace" "$scratch/bin/foretrace"
printf '#!/bin/sh\nprintf "n1\\nn2\\nn3\\n"\n' >"$scratch/bin/scontrol"
cat >"$scratch/bin/srun" <<'END'
#!/bin/bash
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) export NODES=$2; shift 2 ;;
    --nodelist) export LIST=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
exec "$@"
END
for operation in all_reduce all_gather reduce_scatter alltoall; do
  cat >"$scratch/bin/${operation}_perf" <<END
#!/bin/sh
[ "\$LIST" != "\${BROKEN:-}" ] || exit 1
exec foretrace nccl-tests $operation -b 64K -e 4M -f 64 --processes \$((8 * NODES)) --nodes \$NODES --machine $MACHINE
END
done
cat >"$scratch/bin/nvbandwidth" <<'END'
#!/bin/sh
speed=55.37
[ "$LIST" != "${SLOW:-}" ] || speed=11.02
printf 'Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 55.36 %s\n\n' $speed
END
chmod +x "$scratch/bin"/*

judge() {  # EXPECTED NAME: the script's exit code
  local code=0
  OUT=$scratch/$2 bash "$script" >"$scratch/$2.said" 2>&1 || code=$?
  [ "$code" = "$1" ] || { cat "$scratch/$2.said"; echo "$2 ended with $code, not $1"; exit 1; }
}
judge 0 healthy
[ "$(find "$scratch/healthy" -name '*.log' | wc -l)" = 13 ]  # two for each node, three pairs, four of all
grep -q '<testsuites .*failures="0"' "$scratch/healthy/accept.xml"
SLOW=n2 judge 1 slow
grep -q 'nvbandwidth-n2: host -> GPU 1: slow in 1 of 1' "$scratch/slow.said"
BROKEN=n3 judge 2 broken
grep -q '^failed: all_reduce_perf .* on n3' "$scratch/broken.said"
