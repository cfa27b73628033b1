#!/usr/bin/env python3
"""What the simulation of a training step costs, by ranks and by layers: a table and a figure.

step_cost.py FORETRACE [--machine NAME] [--svg FILE] [--runs N] [--most RANKS]

User time of `foretrace simulate` (the least of so many runs: others on the machine only add to it) and its largest
memory, for Llama 3's 8B with full recomputation: FSDP with all ranks and with one of those that are alike, and tensor 8,
pipeline 4 with 8 micro-batches. The table goes to the standard output, in Markdown.
"""
import argparse
import math
import os
import pathlib
import sys
import tempfile

STEP = """schema_version: 1
name: cost
nodes: {nodes}
processes: {ranks}
training_step:
  model: {{style: llama, layers: {layers}, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}}
  batch: {{sequence: 4096, micro: 1, passes: {passes}}}
  parallel: {{tensor: {tensor}, pipeline: {pipeline}}}
  sharding: {sharding}
  precision: {{parameters: {precision}}}
  recompute: full
"""
FSDP = dict(tensor=1, pipeline=1, passes=1, sharding="fsdp", precision="float32")
PIPELINE = dict(tensor=8, pipeline=4, passes=8, sharding="ddp", precision="bfloat16")
# name, colour, settings, options, the most ranks that are tried
SERIES = [("FSDP, all ranks", "#c0392b", FSDP, [], 128),
          ("FSDP, one of each", "#2471a3", FSDP, ["--one-of-each"], 16384),
          ("tensor 8, pipeline 4, one of each", "#1e8449", PIPELINE, ["--one-of-each"], 16384)]
RANKS = [8, 32, 128, 512, 2048, 16384]
LAYERS = [8, 16, 32, 64, 128]


def cost(arguments, settings, options, ranks, layers):
    """(seconds of user time, MiB), or None where it is refused."""
    text = STEP.format(nodes=max(1, ranks // 8), ranks=ranks, layers=layers, **settings)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cost.yaml"
        file.write_text(text)
        command = [arguments.foretrace, "simulate", str(file), "--machine", arguments.machine, *options]
        best = memory = math.inf
        for _ in range(arguments.runs):
            child = os.fork()
            if child == 0:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                if not arguments.verbose:
                    os.dup2(null, 2)
                os.execv(command[0], command)
            _, status, usage = os.wait4(child, 0)
            if status != 0:
                return None
            best, memory = min(best, usage.ru_utime), usage.ru_maxrss / 1024
    return best, memory


def figure(title, label, curves):
    """One diagram, logarithmic both ways: `curves` are (name, colour, [(x, seconds)])."""
    points = [p for _, _, curve in curves for p in curve]
    left, top, wide, high = 56, 34, 380, 230
    x0, x1 = (math.log10(f(p[0] for p in points)) for f in (min, max))
    y0 = math.floor(math.log10(min(p[1] for p in points)))
    y1 = math.ceil(math.log10(max(p[1] for p in points)))
    x = lambda value: left + wide * (math.log10(value) - x0) / max(1e-9, x1 - x0)
    y = lambda value: top + high * (1 - (math.log10(value) - y0) / max(1, y1 - y0))
    out = [f'<text x="{left}" y="18" font-size="14">{title}</text>']
    for power in range(y0, y1 + 1):
        at = y(10**power)
        out.append(f'<path d="M{left} {at:.1f}h{wide}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} s</text>')
    for value in sorted({p[0] for p in points}):
        out.append(f'<text x="{x(value):.1f}" y="{top + high + 16}" text-anchor="middle">{value}</text>')
    out.append(f'<text x="{left + wide / 2}" y="{top + high + 34}" text-anchor="middle">{label}</text>')
    for i, (name, colour, curve) in enumerate(curves):
        line = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in curve)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{colour}"/>' for a, b in curve]
        out.append(f'<text x="{left + 10}" y="{top + 14 + 16 * i}" fill="{colour}">{name}</text>')
    return "\n".join(out)


def svg(diagrams):
    width = 460
    inside = "\n".join(f'<g transform="translate({width * i},0)">\n{d}\n</g>' for i, d in enumerate(diagrams))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(diagrams)}" height="310" '
            'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
            f'{inside}\n</svg>\n')


def table(head, values, rows):
    print(f"| {head} | " + " | ".join(str(v) for v in values) + " |")
    print("| --- |" + " ---: |" * len(values))
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(f"{c[0]:.2f} s, {c[1]:.0f} MiB" if c else "" for c in cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretrace")
    parser.add_argument("--machine", default="h100-nvswitch-8")
    parser.add_argument("--svg", help="the figure's file")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--most", type=int, default=16384, help="ranks")
    parser.add_argument("--verbose", action="store_true", help="show what foretrace says of it")
    arguments = parser.parse_args()
    ranks = [r for r in RANKS if r <= arguments.most]
    by_ranks, by_layers = [], []
    for name, colour, settings, options, most in SERIES:
        least = settings["tensor"] * settings["pipeline"]
        at = lambda r, n: cost(arguments, settings, options, r, n) if least <= r <= most else None
        by_ranks.append((name, colour, [at(r, 32) for r in ranks]))
        by_layers.append((name, colour, [at(max(8, least), n) for n in LAYERS]))
    if not any(c for _, _, cells in by_ranks for c in cells):
        sys.exit("step_cost.py: nothing was simulated; --verbose says why")
    table("ranks, 32 layers", ranks, [(name, cells) for name, _, cells in by_ranks])
    table("layers, 8 ranks (pipeline: 32)", LAYERS, [(name, cells) for name, _, cells in by_layers])
    if arguments.svg:
        curves = lambda xs, rows: [(n, c, [(a, b[0]) for a, b in zip(xs, cells) if b]) for n, c, cells in rows]
        text = svg([figure("user time by ranks, 32 layers", "ranks", curves(ranks, by_ranks)),
                    figure("user time by layers", "layers", curves(LAYERS, by_layers))])
        pathlib.Path(arguments.svg).write_text(text)


if __name__ == "__main__":
    main()
