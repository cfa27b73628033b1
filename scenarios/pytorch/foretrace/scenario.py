"""The small scenario beside the records."""

import pathlib
import re

from .whole import write_whole


def _quoted(text):
    return text if re.fullmatch(r"[A-Za-z_][\w.-]*", text) else "'" + text.replace("'", "''") + "'"


def word(name):
    """A folder's name as a scenario's: letters, digits, '_', '-' and '.'; others become '_'."""
    found = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    return found if found.strip(".") else "step"


def write_scenario(folder, name, world_size, ranks):
    """OUT/step.yaml: one record for all ranks, or each rank's with those that it stands for: itself and the ranks up to the next captured one."""
    lines = ["# Written by `foretrace capture`; what the files hold: scenarios/pytorch/README.md.", "schema_version: 1", f"name: {_quoted(word(name))}",
             f"processes: {world_size}", "captured_step:"]
    ranks = sorted(ranks)
    if len(ranks) == 1:
        lines.append(f"  calls: rank{ranks[0]}.calls.jsonl.gz")
    else:
        lines.append("  calls:")
        for i, rank in enumerate(ranks):
            first = rank if i else 0
            last = ranks[i + 1] if i + 1 < len(ranks) else world_size
            lines.append(f"    - {{file: rank{rank}.calls.jsonl.gz, rank: {rank}, stands_for: {list(range(first, last))}}}")
    path = pathlib.Path(folder) / "step.yaml"
    write_whole(path, "\n".join(lines) + "\n")
    return path
