#!/usr/bin/env python3
"""How good NCCL's times over several nodes are, by operation, on published nccl-tests tables.

nccl_nodes.py reports/published/nccl_over_nodes.csv FORETRACE [--use judge] [--above 25] [--nccl-version 2.27.3]

Of each machine file the rows of the table that it predicts; a row's release of NCCL chooses. --above: also each row
whose |error| is larger, in per cent, worst first. --use fit: the rows that the machine files learned from."""
import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def tables_of(file, use):
    """[{column: text}]: what rows of one table share, in the file's order."""
    names = ("machine", "source", "nccl", "collective", "gpus", "nodes")
    with file.open(encoding="utf-8") as rows:
        shared = [tuple(row[name] for name in names) for row in csv.DictReader(rows) if row["use"] == use]
    return [dict(zip(names, values)) for values in dict.fromkeys(shared)]


def compared(given, table):
    command = [given.foretrace, "nccl-tests", "--compare", given.table, "--machine", table["machine"], "--format", "json"]
    for name, text in {**table, "use": given.use}.items():
        command += ["--where", f"{name}={text}"]
    if given.version:
        command += ["--nccl-version", given.version]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def summary(name, rows):
    errors = [100 * abs(row["error"]) for row in rows]
    inside = 100 * sum(row["in_band"] for row in rows) / sum(row["samples"] for row in rows)
    return (f"| {name} | {len(rows)} | {statistics.median(errors):.1f} % | {quantile(errors, 0.9):.1f} % | "
            f"{inside:.0f} % |")


def line(table, row):
    return (f"| {table['machine']} | {table['nccl']} | {table['nodes']} | {row['op']} | {row['size_bytes']} | "
            f"{row['measured_us']:.1f} | {row['predicted_us']:.1f} | {100 * row['error']:+.0f} % | "
            f"{row['algorithm']} {row['protocol']} {row['channels']} |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", type=pathlib.Path)
    arguments.add_argument("foretrace", type=pathlib.Path)
    arguments.add_argument("--use", default="judge", choices=("judge", "fit"))
    arguments.add_argument("--above", type=float, metavar="PERCENT")
    arguments.add_argument("--nccl-version", dest="version", help="whose rules choose, for all rows")
    given = arguments.parse_args()
    given.foretrace = given.foretrace.resolve()
    rows = [(table, row) for table in tables_of(given.table, given.use) for row in compared(given, table)]
    by_operation = collections.defaultdict(list)
    for _, row in rows:
        by_operation[row["op"]].append(row)
    print("| Operation | Points | Median | 90th | In the band |\n| --- | ---: | ---: | ---: | ---: |")
    for name, some in by_operation.items():
        print(summary(name, some))
    print(summary("all", [row for _, row in rows]))
    if given.above is not None:
        print("\n| Machine | NCCL | Nodes | Operation | Bytes | Measured us | Predicted us | Error | Choice |\n"
              "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- |")
        worst = [(table, row) for table, row in rows if 100 * abs(row["error"]) > given.above]
        for table, row in sorted(worst, key=lambda pair: -abs(pair[1]["error"])):
            print(line(table, row))


if __name__ == "__main__":
    main()
