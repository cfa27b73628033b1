"""Learns from records of the emulated depth which launches an operation makes, for the depth of fake tensors: foretrace/launches.json.gz.

    python3 learn_launches.py OUT.json.gz RECORD.calls.jsonl.gz..."""

import collections
import gzip
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from foretrace.fake_launches import keys_of, size_of  # noqa: E402

WORK = ("launch", "gemm", "lib", "memset")


def launches_of(path):
    """[(key, size, [launch...])] of all operations, each with those of the operations inside it; host's ns a launch over its reference loop."""
    names, signatures, operations, work = {}, {}, [], collections.defaultdict(list)
    launches, end, loop = 0, 0, 0
    with gzip.open(path, "rt") as file:
        for line in map(json.loads, file):
            kind = line.get("k")
            if kind is None:
                loop = line["host"].get("torch_loop_ns", 0)
            elif kind == "name":
                names[line["i"]] = line["n"]
            elif kind == "sig":
                signatures[line["i"]] = line
            elif kind == "op":
                operations.append((line.get("p"), signatures[line["q"]]))
            elif kind == "end":
                end = line["t"]
            elif kind in WORK and "op" in line:
                launches += 1
                blocks = line["g3"][0] * line["g3"][1] * line["g3"][2] if kind == "launch" else 0
                one = (kind, names[line["n"]] if kind == "launch" else "", line["b3"][0] * line["b3"][1] * line["b3"][2] if kind == "launch" else 0, blocks)
                op = line["op"]
                while op is not None:
                    work[op].append(one)
                    op = operations[op][0]
    found = [(key, size_of(s["in"]), work.get(i, [])) for i, (_, s) in enumerate(operations) if s["n"].startswith("aten::")
             for key in dict.fromkeys(keys_of(s["n"], s["in"]))]
    return found, end / launches / loop if launches and loop else None


def table(paths):
    seen, shares = collections.defaultdict(list), []
    for path in paths:
        found, share = launches_of(path)
        shares += [share] if share else []
        for key, size, launches in found:
            seen[key].append((size, launches))
    made, names = {}, {}
    for key, all_of in sorted(seen.items()):
        usual = collections.Counter(tuple((k, n, b) for k, n, b, _ in launches) for _, launches in all_of).most_common(1)[0][0]
        alike = [(size, launches) for size, launches in all_of if tuple((k, n, b) for k, n, b, _ in launches) == usual]
        rows = []
        for i, (kind, name, block) in enumerate(usual):
            per_block = statistics.median(size / max(launches[i][3], 1) for size, launches in alike)
            rows.append([kind, names.setdefault(name, len(names)), block, round(per_block, 2)])
        made[key] = rows
    return {"names": list(names), "operations": made, "host_loops_per_launch": statistics.median(shares) if shares else 0}


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as out:
        out.write(json.dumps(table(sys.argv[2:]), separators=(",", ":")).encode())
