"""index: one page of all recorded rounds: what each archive is, and how exact the predictions were, round by round."""

import json
import re
import subprocess

import evaluate
import rounds
from generate import read_rows

SERIES = ("round", "written", "four-gpus", "eight-gpus", "one-gpu-steps", "two-gpu-steps")
HEAD = """# Blind rounds

Programs that were predicted, committed, and only then measured. [How a round is made](../../hw/laboratory/blind/README.md).
`ROUND.tar.gz` has a round's programs, predictions and all that was measured; `ROUND/` has its notes and evaluations.
`hw/laboratory/blind/blind.py unpack reports/blind/round-1 DIRECTORY` writes the files of an archive; `blind.py pack` makes it,
and renews this page. Programs of PyTorch: [programs](programs/README.md), [their first round](programs-1/README.md).

## Trend

|error| is |predicted / measured - 1|, measured the median over process launches. In band: measured medians in the predicted band.

| Round | Machine | Regions | Median | 90th | In band |
| --- | --- | ---: | ---: | ---: | ---: |
"""
ARCHIVES = """
## Archives

Seed: the hash of the text in brackets; `-` where people wrote the programs. Predicted, measured: the commits that recorded them.

| Archive | Files | Programs | Seed | Predicted | Measured | sha256 |
| --- | ---: | ---: | --- | --- | --- | --- |
"""
ROW = re.compile(r"^\| \[(\S+)\.tar\.gz\]\(\S+\) \| (\d+) \| (\d+) \| (.*) \| (.*) \| (.*) \| `([0-9a-f]{64})` \|$", re.MULTILINE)
KEYS = ("round", "files", "programs", "seed", "predicted", "measured", "sha256")


def in_order(name):
    series, number = name.rsplit("-", 1)
    return (SERIES.index(series) if series in SERIES else len(SERIES), series, int(number))


def recorded(directory):
    """Names of the rounds that have an archive, in the page's order."""
    names = [path.name.removesuffix(".tar.gz") for path in directory.glob("*.tar.gz")]
    return sorted(names, key=in_order)


def entries(text):
    """{round: its row of the page, by KEYS}."""
    return {row[0]: dict(zip(KEYS, row)) for row in ROW.findall(text)}


def trend_rows(directory, name):
    notes = "NOTES.md" if (directory / name / "NOTES.md").exists() else "evaluation.md"
    for file in sorted((directory / name).glob("evaluation-*.csv")):
        rows = [{**row, "counts": int(row["counts"]), "error": float(row["error"]), "spread": float(row["spread"]),
                 "in_band": int(row["in_band"])} for row in read_rows(file)]
        values = evaluate.figures(rows)
        machine = file.stem.removeprefix("evaluation-")
        yield (f"| [{name}]({name}/{notes}) | [{machine}]({name}/evaluation.md#{machine}) | {values['regions']} | "
               f"{100 * values['median']:.1f} % | {100 * values['90th']:.1f} % | {100 * values['in band']:.0f} % |\n")


def commits(directory, name, kind):
    """Which commits brought the round's files of a kind, oldest first; "" where git cannot say."""
    said = subprocess.run(["git", "-C", str(directory), "log", "--reverse", "--diff-filter=A", "--format=%h",
                           "--abbrev=12", "--", f"{name}/{kind}*"], capture_output=True, text=True, check=False)
    return " ".join(said.stdout.split())


def entry(directory, name, before):
    """A row of the table. What a former page said of commits stays; the archive is read anew."""
    archive = directory / f"{name}.tar.gz"
    files = rounds.read_archive(archive)
    about = json.loads(files["round.json"]) if "round.json" in files else None
    seed = f"{about['seed']} (`{about['seed_text']}`)" if about else "-"
    programs = sum(file.startswith("programs/") and file.endswith(".yaml") for file in files)
    predicted = (before.get("predicted", "-").strip("-") or commits(directory, name, "predicted")
                 or commits(directory, ".", archive.name))  # the archive begins with the predictions
    measured = before.get("measured", "-").strip("-") or commits(directory, name, "evaluation")
    return (f"| [{archive.name}]({archive.name}) | {len(files)} | {programs} | {seed} | {predicted or '-'} | "
            f"{measured or '-'} | `{rounds.sha256_of(archive)}` |\n")


def page(directory):
    readme = directory / "README.md"
    before = entries(readme.read_text(encoding="utf-8")) if readme.exists() else {}
    names = recorded(directory)
    return (HEAD + "".join(row for name in names for row in trend_rows(directory, name)) +
            ARCHIVES + "".join(entry(directory, name, before.get(name, {})) for name in names))
