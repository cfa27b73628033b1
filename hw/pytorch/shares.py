#!/usr/bin/env python3
"""Where the time of one step went on each rank, from the Kineto traces of all ranks. Needs no PyTorch.

    python3 shares.py TRACE...                          the traces of all ranks, in their order (.json or .json.gz)
    python3 shares.py --into results.jsonl traces.tar   adds `shares` to the lines that the archive has all traces of

A kernel of NCCL that waits inside for a rank that has not called yet does not communicate. A moment of a rank is

    computing       anything but a kernel of NCCL runs: kernels, copies, sets
    communication   else: a kernel of NCCL that all its ranks run
    waiting         else: a kernel of NCCL that some rank has not begun; or the rank's step is over, and another's is not
    idle            else: nothing runs, the rank's own host is late

Kernels of one communicator belong together by their order, and end together. So the shortest of them is how long they
communicated, and what another one took longer its rank waited for that of the shortest: no clock is needed. The step is from
the first kernel of any rank to the last one's end, which takes the clock that ranks of one host share (`ends_differ_us`: the
median of how far the ends of kernels that belong together are apart)."""

import argparse
import collections
import gzip
import json
import lzma
import pathlib
import re
import statistics
import sys
import tarfile
import zlib

import kineto
from result import write_text_whole
from spans import nanoseconds

BROKEN = (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError, ValueError, KeyError, TypeError, AttributeError, OverflowError)


def members(arguments, ranks):
    """Of a kernel's communicator: all ranks where the trace does not say it."""
    named = tuple(int(one) for one in re.findall(r"\d+", str(arguments.get("Process Group Ranks", ""))))
    return named if named and len(named) == arguments.get("Group size", len(named)) else tuple(range(ranks))


def communicator(event, ranks):
    """Its name, and its members: two may have the same."""
    arguments = event.get("args", {})
    return str(arguments.get("Process Group Name", "")), members(arguments, ranks)


def work_of(trace, ranks):
    """What a rank's GPU did: [kind, begin, end, communicator or None] of each kernel, copy and set, by their begin. Nanoseconds.
    ValueError for what no trace has."""
    found = []
    for kind, _, _, event in kineto.gpu_events(trace["traceEvents"]):
        begin, end = nanoseconds(trace, event)
        if end < begin:
            raise ValueError(f"{event.get('name', kind)} ends before it begins")
        found.append([kind, begin, end, communicator(event, ranks) if kind.startswith("nccl") else None])
    return sorted(found, key=lambda one: one[1])


def is_matched(group, orders):
    """Of three ranks and more the order does not say who sends to whom."""
    return all(order == orders[0] for order in orders) and (len(group) < 3 or "nccl_send_recv" not in orders[0])


def matched(works):
    """By rank, (begin, until, end) of each NCCL kernel, which waited until `until`; how many have no partners in the traces,
    so that nothing is known of their waiting; how far apart the ends of the others are."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))  # of members: by rank its kernels in order
    for rank, work in enumerate(works):
        for kind, begin, end, group in work:
            if group is not None:
                groups[group[0], tuple(group[1])][rank].append((kind, begin, end))
    kernels, alone, apart = [[] for _ in works], 0, []
    for (_, group), of in groups.items():
        if sorted(of) != sorted(group) or not is_matched(group, [[kind for kind, _, _ in one] for one in of.values()]):
            alone += sum(len(found) for found in of.values())
            for rank, found in of.items():
                kernels[rank] += [(begin, begin, end) for _, begin, end in found]
            continue
        for together in zip(*of.values()):
            least = min(end - begin for _, begin, end in together)
            apart.append(max(end for *_, end in together) - min(end for *_, end in together))
            for rank, (_, begin, end) in zip(of, together):
                kernels[rank].append((begin, end - least, end))
    return kernels, alone, apart


def shares_of(works):
    """What work_of() found on each rank, in their order: a dictionary for each, or an empty list where one has none."""
    if not works or not all(works):
        return []
    kernels, alone, apart = matched(works)
    begin = min(work[0][1] for work in works)
    ends = [max(end for _, _, end, _ in work) for work in works]
    found = []
    for work, nccl, end in zip(works, kernels, ends):
        computing = kineto.union((first, last) for _, first, last, group in work if group is None)
        communication = kineto.without(kineto.union((until, last) for _, until, last in nccl), computing)
        busy = kineto.union([*computing, *communication])
        inside = [(first, until) for first, until, _ in nccl if until > first]
        waiting = kineto.without(kineto.union([*inside, (end, max(ends))]), busy)
        ns = {"step": max(ends) - begin, "computing": kineto.length(computing),
              "communication": kineto.length(communication), "waiting": kineto.length(waiting)}
        ns["idle"] = ns["step"] - ns["computing"] - ns["communication"] - ns["waiting"]
        differ = round(statistics.median(apart) / 1000, 3) if apart else None
        found.append({f"{name}_us": value / 1000 for name, value in ns.items()} |
                     {"ends_differ_us": differ, "unmatched": alone})
    return found


def read_trace(data):
    """Of a Kineto trace's bytes, gzip'ed or not."""
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return json.loads(text.decode("utf-8", errors="replace"), strict=False)


def traces_in(archive):
    """By step the traces' bytes by rank, as the archive has them."""
    found = collections.defaultdict(dict)
    with tarfile.open(archive) as files:
        for member in files:
            name = re.fullmatch(r"(.*)\.rank(\d+)\.json(?:\.gz)?", member.name)
            if name and member.isfile():
                found[name[1]][name[2]] = files.extractfile(member).read()
    return found


def add_shares(line, shares):
    """To a line of results.jsonl, what shares_of() says of its ranks. Those that were not traced have none."""
    for rank, of_rank in enumerate(shares):
        if "trace" in line["ranks"][str(rank)]:
            line["ranks"][str(rank)]["trace"]["shares"] = of_rank


def with_shares(lines, archive):
    """The lines of a results.jsonl; those whose ranks all have traces in the archive have shares."""
    packed = traces_in(archive)
    for text in lines:
        line = json.loads(text)
        traces = packed.get(line["id"], {})
        if len(traces) < 2 or set(traces) != set(line["ranks"]):
            yield text
            continue
        add_shares(line, shares_of([work_of(read_trace(traces[rank]), len(traces)) for rank in sorted(traces, key=int)]))
        yield json.dumps(line) + "\n"


def add_to(results, archive):
    """How many lines of results.jsonl have shares now, and how many there are."""
    new = list(with_shares(results.read_text(encoding="utf-8").splitlines(keepends=True), archive))
    write_text_whole(results, "".join(new))
    return sum('"shares"' in line for line in new), len(new)


def refuse(files, problem):
    """Exits with 2."""
    print(f"error: {files}: {type(problem).__name__}: {problem}", file=sys.stderr)
    raise SystemExit(2) from problem


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a trace of each rank; with --into the archive of them")
    parser.add_argument("--into", metavar="results.jsonl", help="adds the shares to its lines")
    parsed = parser.parse_args()
    if parsed.into:
        if len(parsed.files) != 1:
            parser.error("--into takes one archive")
        try:
            have, lines = add_to(pathlib.Path(parsed.into), parsed.files[0])
        except BROKEN as problem:
            refuse(f"{parsed.into}, {parsed.files[0]}", problem)
        print(f"{have} of {lines} lines have shares")
        return 0
    works = []
    for file in parsed.files:
        try:
            works.append(work_of(read_trace(pathlib.Path(file).read_bytes()), len(parsed.files)))
            if not works[-1]:
                raise ValueError("no kernel, copy or set, so that nothing is known of the others' waiting")
        except BROKEN as problem:
            refuse(file, problem)
    shares = shares_of(works)
    for rank, of_rank in enumerate(shares):
        print(json.dumps({"rank": rank} | of_rank))
    return 0


if __name__ == "__main__":
    sys.exit(main())
