"""evaluate: joins what was predicted with what was measured; one CSV, and a summary."""

import collections
import statistics

from generate import read_rows, write_rows

COLUMNS = ["program", "class", "gpus", "region", "instance", "process", "predicted_us", "low_us",
           "high_us", "measured_us", "error", "in_band", "starts", "spread", "counts"]
KEY = ["program", "region", "instance", "process"]


def percentile(values, share):
    """Between the two nearest of the sorted values, in proportion."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def join(predicted, measured, gpus):
    """A row per region and process. error: predicted / measured - 1, of the median over starts;
    spread: largest minus smallest start, over that median; counts: 1 on the process where the
    region took longest, so that a region of several processes is one region."""
    starts = collections.defaultdict(list)
    for row in measured:
        starts[tuple(row[key] for key in KEY)].append(float(row["median_us"]))
    rows, missing = [], []
    programs = {row["program"] for row in measured}
    for row in predicted:
        times = starts.pop(tuple(row[key] for key in KEY), None)
        if times is None:
            of_program = row["program"] in programs
            missing.append((row["program"], row["region"] if of_program else "", "not measured"))
            continue
        us, median = float(row["predicted_us"]), statistics.median(times)
        rows.append({**{key: row[key] for key in COLUMNS if key in row},
                     "gpus": gpus[row["program"]], "measured_us": median, "error": us / median - 1,
                     "in_band": int(float(row["low_us"]) <= median <= float(row["high_us"])),
                     "starts": len(times), "spread": (max(times) - min(times)) / median})
    missing += [(key[0], key[1], "not predicted") for key in starts]
    slowest = {}
    for row in rows:
        region = (row["program"], row["region"], row["instance"])
        if region not in slowest or row["measured_us"] > slowest[region]["measured_us"]:
            slowest[region] = row
    for row in rows:
        row["counts"] = int(slowest[row["program"], row["region"], row["instance"]] is row)
    return rows, missing


def figures(rows):
    """Of the rows that count: number, error's figures, coverage, spread, each as a fraction."""
    rows = [row for row in rows if row["counts"]]
    size = [abs(row["error"]) for row in rows]
    return {"regions": len(rows), "median": statistics.median(size), "mean": statistics.mean(size),
            "90th": percentile(size, 0.90), "95th": percentile(size, 0.95), "worst": max(size),
            "bias": statistics.median(row["error"] for row in rows),
            "in band": statistics.mean(row["in_band"] for row in rows),
            "spread": statistics.median(row["spread"] for row in rows)}


def summary(rows, missing):
    """Markdown: all, per number of GPUs, per class, the worst ten, what could not be joined."""
    parts = [("all", rows)]
    parts += [(f"{gpus} GPU{'s' if gpus != '1' else ''}",
               [row for row in rows if row["gpus"] == gpus])
              for gpus in sorted({row["gpus"] for row in rows})]
    parts += [(class_, [row for row in rows if row["class"] == class_])
              for class_ in sorted({row["class"] for row in rows})]
    names = list(figures(rows))
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for name, part in parts:
        values = figures(part)
        cells = [str(values["regions"])] + [
            f"{100 * values[key]:{'+' if key == 'bias' else ''}.1f} %" for key in names[1:]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "median to worst: of |error|, error being predicted / measured - 1, measured the "
              "median over process launches; bias: median error; in band: share of measured medians "
              "in the predicted band; spread: median over regions of (slowest - fastest start) / "
              "median.", "", "| worst ten | region | predicted us | measured us | error | spread |",
              "|---|---|---:|---:|---:|---:|"]
    worst = sorted((row for row in rows if row["counts"]), key=lambda row: -abs(row["error"]))
    for row in worst[:10]:
        lines.append(f"| {row['program']} | {row['region']} | {float(row['predicted_us']):.1f} | "
                     f"{row['measured_us']:.1f} | {100 * row['error']:+.1f} % | "
                     f"{100 * row['spread']:.1f} % |")
    whole = sorted({program for program, region, _ in missing if not region})
    if whole:
        lines += ["", f"{len(whole)} programs were not measured: {', '.join(whole)}"]
    parts = [row for row in missing if row[1]]
    if parts:
        lines += ["", f"{len(parts)} rows could not be joined:", ""]
        lines += [f"- {program}, {region}: {why}" for program, region, why in parts]
    return "\n".join(lines) + "\n"


def written(rows):
    return [{**row, "measured_us": f"{row['measured_us']:.3f}", "error": f"{row['error']:.4f}",
             "spread": f"{row['spread']:.4f}"} for row in rows]


def write_part(page, title, text):
    """Puts the part `title` into a page of such parts, in their order, in place of what it said before."""
    before = page.read_text(encoding="utf-8").split("\n## ")[1:] if page.exists() else []
    parts = dict(part.split("\n\n", 1) for part in before) | {title: text}
    page.write_text("# Evaluation\n" + "".join(f"\n## {name}\n\n{parts[name].strip()}\n" for name in sorted(parts)),
                    encoding="utf-8")


def evaluate(directory, measured, machine, into=None):
    """Writes INTO/evaluation-MACHINE.csv, and the part of INTO/evaluation.md that is the machine's, INTO being DIRECTORY unless said; returns the summary."""
    into = into or directory
    gpus = {row["program"]: row["gpus"] for row in read_rows(directory / "programs.csv")}
    predicted = read_rows(directory / f"predicted-{machine}.csv")
    rows, missing = join(predicted, read_rows(measured), gpus)
    text = summary(rows, missing)
    write_rows(into / f"evaluation-{machine}.csv", COLUMNS, written(rows))
    write_part(into / "evaluation.md", machine, text)
    return text
