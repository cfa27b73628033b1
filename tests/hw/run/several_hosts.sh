#!/bin/sh
# Open MPI's launch agent (plm_rsh_agent) for tests: called as ssh is, HOST COMMAND...; every "host"
# is this machine, by processes that share no memory and no directory for temporary files.
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/host_$1.XXXXXX")
export TMPDIR
shift
sh -c "$*"
status=$?
rm -rf "$TMPDIR"
exit $status
