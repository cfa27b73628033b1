"""generate: writes the programs of a round, from its name alone."""

import csv
import subprocess

from draw import Draw, seed_of
from families import TABLE, makers

PROGRAM_COLUMNS = ["program", "class", "gpus", "processes", "environment", "file"]


def seed_text(round_name):
    """Nobody picks a seed: it is the hash of this text."""
    return f"foretrace blind {round_name.replace('-', ' ')}"


def programs(seed, table=TABLE, several=4):
    """(name, class, Program) of every program of a round. A row of the table that has one number of
    programs means `several` GPUs, one that has two means one and two."""
    for class_, *counts, variants in table:
        for gpus, count in zip((1, 2) if len(counts) == 2 else (several,), counts):
            for number in range(count):
                draw = Draw(f"{seed}/{class_}/{gpus}/{number}")
                made = makers(variants, gpus)
                # A seed of its own begins the variants elsewhere in every round.
                shift = seed_of(f"{seed}/{class_}") % len(made)
                program = made[(number + shift) % len(made)](draw, gpus, number)
                yield f"{program.kind}_{gpus}{number:02}", class_, program


def commit(directory):
    """The commit of the sources, with a + when they differ from it."""
    def git(*command):
        return subprocess.run(["git", "-C", str(directory), *command], capture_output=True,
                              text=True, check=False).stdout.strip()
    changed = git("status", "--porcelain", "--", ":/", ":(top,exclude)reports/blind")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if changed else "")


def generate(directory, seed, table=TABLE, several=4):
    """Writes DIRECTORY/programs.csv and DIRECTORY/programs/CLASS/NAME.yaml; returns the rows."""
    rows, names = [], set()
    for name, class_, program in programs(seed, table, several):
        if name in names:
            raise ValueError(f"two programs are named {name}")
        names.add(name)
        file = f"programs/{class_}/{name}.yaml"
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program.text(name, f"blind_{class_}"))
        environment = " ".join(f"{k}={v}" for k, v in program.sections["environment"].items())
        rows.append(dict(zip(PROGRAM_COLUMNS, [name, class_, program.gpus, program.processes,
                                               environment, file])))
    write_rows(directory / "programs.csv", PROGRAM_COLUMNS, rows)
    return rows


def write_rows(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
