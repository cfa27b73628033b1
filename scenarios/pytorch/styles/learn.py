"""Learns a house style's step from captures of several sizes: templates for scenarios/styles, whose numbers are formulas of the sizes.

    python3 learn.py OUT FAMILY... [--work DIR]    # OUT/FAMILY.json.gz; "lists": what is done to all parameters; needs PyTorch, transformers, FORETRACE_LIBRARY"""

import argparse
import concurrent.futures
import difflib
import gzip
import json
import math
import pathlib
import pickle
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from calls import Step, token  # noqa: E402
from families import POINTS, TRAITS, point  # noqa: E402
from formulas import Formulas  # noqa: E402
from history import history, rounded  # noqa: E402
import lists  # noqa: E402

BASE, DEEP = 2, (3, 12, 40)  # layers of the captures that differ in sizes; of those that differ in layers
VARIANTS = {"bfloat16": [], "bfloat16/recompute": ["--recompute"], "autocast": ["--precision=autocast"], "autocast/recompute": ["--precision=autocast", "--recompute"]}


def capture(work, family, sizes, layers, options):
    name = "-".join([family, "_".join(o.strip("-") for o in options) or "plain", *(f"{k}{v}" for k, v in sizes.items()), f"L{layers}"])
    out = work / name
    record = out / "rank0.calls.jsonl.gz"
    if not record.exists():
        text = ",".join(f"{k}={v}" for k, v in {**sizes, "L": layers}.items())
        subprocess.run([sys.executable, "-m", "foretrace", "capture", "-o", out, "--", HERE / "train.py", family, text, *options, f"--memory={out}.memory"],
                       check=True, stdout=subprocess.DEVNULL)
    with open(f"{out}.memory", "rb") as file:
        return Step(record), history(pickle.load(file))


def repeats(short, long):
    """Blocks of `long` (a layer more than `short`) that come again for each layer, as few as can be: [(begin, end)], as it is in `long`."""
    for blocks in range(40):
        found = _repeats(short, long, 0, 0, blocks)
        if found is not None:
            return found
    raise SystemExit("learn.py: the deeper model does something else")


def _repeats(short, long, i, j, blocks):
    while i < len(short) and j < len(long) and short[i] == long[j]:
        i, j = i + 1, j + 1
    if j == len(long):
        return [] if i == len(short) else None
    for length in range(1, min(len(long) - len(short) - (j - i), j) + 1 if blocks else 0):
        if (short[i:i + 2] != long[j + length:j + length + 2] and i + 1 < len(short)) or long[j:j + length] != long[j - length:j]:
            continue
        rest = _repeats(short, long, i, j + length, blocks - 1)
        if rest is None:
            continue
        back = 0  # the same block, begun earlier: away from what comes behind the layers
        while back < min(length, i - length) and long[j - back - 1] == long[j + length - back - 1] == long[j - length - back - 1]:
            back += 1
        return [(j - back // 2, j - back // 2 + length), *rest]
    return None


def merged(sequences):
    """One sequence of tokens in which each of `sequences` is contained: [(token, {which: position})]."""
    whole = [[t, {0: i}] for i, t in enumerate(sequences[0])]
    for k, sequence in enumerate(sequences[1:], 1):
        made = []
        matcher = difflib.SequenceMatcher(None, [t for t, _ in whole], sequence, autojunk=False)
        for what, a, b, c, d in matcher.get_opcodes():
            if what == "equal":
                for one, at in zip(whole[a:b], range(c, d)):
                    one[1][k] = at
                    made.append(one)
                continue
            made += whole[a:b]
            made += [[sequence[at], {k: at}] for at in range(c, d)]
        whole = made
    return whole


class Template:
    """Values of several captures as one tree with formulas."""

    def __init__(self, formulas):
        self.formulas, self.table, self.indices = formulas, [], {}
        self.unsolved = {}

    def reference(self, formula):
        if not isinstance(formula, dict):
            return formula
        key = json.dumps(formula)
        if key not in self.indices:
            self.indices[key] = len(self.table)
            self.table.append(formula)
        return f"={self.indices[key]}"

    def strides(self, tensors, at, where):
        """Of dimensions of one element strides say nothing: those captures are left out."""
        made = []
        for i in range(len(tensors[0]["st"])):
            some = [k for k, t in enumerate(tensors) if t["s"][i] != 1] or list(range(len(tensors)))
            made.append(self.value([tensors[k]["st"][i] for k in some], [at[k] for k in some], f"{where}.st"))
        return made

    def value(self, values, at, where=""):
        first = values[0]
        if all(v == first for v in values):
            return first
        if all(isinstance(v, dict) and v.keys() == first.keys() for v in values):
            if "st" in first and len({len(v["st"]) for v in values}) == 1:
                return {**{key: self.value([v[key] for v in values], at, f"{where}.{key}") for key in first}, "st": self.strides(values, at, where)}
            return {key: self.value([v[key] for v in values], at, f"{where}.{key}") for key in first}
        if all(isinstance(v, list) and len(v) == len(first) for v in values):
            return [self.value([v[i] for v in values], at, where) for i in range(len(first))]
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            formula = self.formulas.solve(values, at)
            if formula is not None:
                return self.reference(formula)
        self.unsolved[where] = values
        found = self.formulas.steps(values, at)
        if found is None:
            raise SystemExit(f"learn.py: no rule for {where}: {values}")
        return self.reference(found)


def without(call, *keys):
    return {key: value for key, value in call.items() if key not in ("dt", "more_dt", *keys)}


def told(calls):
    """Calls as texts that are the same in models of other depth."""
    return [json.dumps(without(c, "same")) for c in calls]


def with_repeats(lines, at, blocks):
    """`lines` with the blocks of a layer more: `at` tells the first capture's position of a line, or None."""
    made, ends, before = [], {}, 0
    for begin, end in blocks:  # in the deeper capture, behind the same block of the first one
        ends[begin - before] = end - begin
        before += end - begin
    position = {p: i for i, p in enumerate(at) if p is not None}
    for i, line in enumerate(lines + [None]):
        here = at[i] if i < len(lines) else max(position) + 1
        if here in ends:
            length = ends.pop(here)
            made.append({"repeat": lines[position[here - length]:i]})
        if line is not None:
            made.append(line)
    if ends:
        raise SystemExit("learn.py: a layer's block has no place")
    return made


def linear(base, more):
    """A time that grows with the number of layers (or tensors), as [at none, for each]; `more`: [(how many, time)]."""
    n, t = more[-1]
    slope = (t - base[1]) / (n - base[0])
    return [round(base[1] - slope * base[0], 9), round(slope, 9)] if abs(t - base[1]) > 3e-3 else round(base[1], 9)


def passes(template, steps, deep):
    """Calls of the passes forward and backward over several sizes (`steps`), of more layers at the first size (`deep`: [(layers, calls)])."""
    whole = merged([[token(c, p) for c in calls] for calls, p in zip(steps, template.formulas.points)])
    at = [where.get(0) for _, where in whole]
    blocks = repeats(told(steps[0]), told(deep[0][1]))
    lines = []
    for t, where in whole:
        present = sorted(where)
        calls = [without(steps[k][where[k]]) for k in present]
        line = {key: template.value([c.get(key) for c in calls], present, f"{t[1] or t[0]}|{t[2]}.{key}") for key in dict.fromkeys(k for c in calls for k in c)}
        line["dt"] = round(statistics.median(steps[k][where[k]]["dt"] for k in present), 9)
        if len(present) < len(steps):
            line["if"] = condition(template, where, list(range(len(steps))), t)
        lines.append(line)
    grown = deep_times(steps[0], deep[-1], blocks)
    for line, position in zip(lines, at):
        if position is not None:
            line["dt"] = linear((BASE, line["dt"]), [(deep[-1][0], line["dt"] + grown[position])])
    return with_repeats(lines, at, blocks)


def deep_times(base, deep, blocks):
    """How much more time each of the first capture's calls takes in the deeper one."""
    layers, calls = deep
    grown, moved, before = [0.0] * len(base), 0, 0
    ends = {begin: end - begin for begin, end in blocks}
    short = 0
    for begin in [*sorted(ends), None]:
        until = len(base) if begin is None else begin - before
        while short < until:
            grown[short] = calls[short + moved]["dt"] - base[short]["dt"]
            short += 1
        if begin is not None:
            before += ends[begin]
            moved += ends[begin] * (layers - BASE)
    return grown


def condition(template, where, points, what):
    rule = template.formulas.steps([k in where for k in points], points)
    if rule is None:
        raise SystemExit(f"learn.py: no rule for when there is {what}")
    return template.reference(rule)


def memory(template, steps, deep):
    """Sizes of blocks of the allocator as [size] or, where it depends, [size, condition]; negative ones are freed; with the layers' repeats."""
    points = [k for k, p in enumerate(template.formulas.points) if p["B"] > 1]  # one sequence needs fewer copies: it is said to have them
    whole = [(t, {points[k]: i for k, i in where.items()}) for t, where in merged([[size > 0 for size in steps[k]] for k in points])]
    lines = []
    for born, where in whole:
        present = sorted(where)
        size = template.value([abs(steps[k][where[k]]) for k in present], present, "memory")
        line = [1 if born else -1, size]
        if len(present) < len(points):
            line.append(condition(template, where, points, "memory"))
        lines.append(line)
    return with_repeats(lines, [where.get(0) for _, where in whole], repeats(steps[0], deep))


def least(values, features):
    """Whole factors of the features that are nearest to the values."""
    import numpy
    found = numpy.linalg.lstsq(numpy.array(features, dtype=float), numpy.array(values, dtype=float), rcond=None)[0]
    return [round(float(x)) for x in found]


def excess(sizes):
    """The largest sum on the way, and what is left at the end."""
    now = top = 0
    for size in sizes:
        now += size
        top = max(top, now)
    return top, now


def queries(step):
    """Calls of CUDA without a record of their own, for each that has work."""
    asked = sum(n for name, n in step.end["counts"].items() if name.startswith("cuda"))
    return round(asked / sum(1 for c in sum(step.parts.values(), []) if c["k"] in ("launch", "gemm", "lib", "copy", "memset")), 3)


def parameters_of(step):
    return [t["s"] for t in next(c for c in step.parts["clip"] if c["q"]["n"] == "aten::_foreach_norm")["q"]["in"][0]]


def of_lists(part, name, captures, width):
    """What clipping or an optimizer calls, for any list of parameters. `captures`: [(step, history)]."""
    shapes = [parameters_of(step) for step, _ in captures]
    points = [{"T": len(s), "C": max(math.ceil(math.prod(one) / lists.CHUNK) for one in s)} for s in shapes]
    template = Template(Formulas(points))
    all_calls = [lists.generic(step.parts[part], s) for (step, _), s in zip(captures, shapes)]
    if len({len(calls) for calls in all_calls}) > 1:
        raise SystemExit(f"learn.py: {name}: {[len(calls) for calls in all_calls]} calls")
    order = sorted(range(len(points)), key=lambda k: points[k]["T"])
    lines = []
    for calls in zip(*all_calls):
        at = list(range(len(calls)))
        line = {key: template.value([c.get(key) for c in (without(c) for c in calls)], at, f"{name}.{calls[0]['q']['n']}.{key}") for key in without(calls[0])}
        few = [k for k in order if points[k]["T"] == points[order[0]]["T"]]
        line["dt"] = linear((points[order[0]]["T"], statistics.median(calls[k]["dt"] for k in few)), [(points[order[-1]]["T"], calls[order[-1]]["dt"])])
        if "list" in line:
            line["more_dt"] = round(max(c["more_dt"] for c in calls), 9)
        lines.append(line)
    blocks = [excess(h[1][1 if part == "clip" else 2]) for _, h in captures]
    features = [[sum(rounded(math.prod(one) * width) for one in s), 512 * p["T"], 4 * p["T"] * p["C"], 512] for s, p in zip(shapes, points)]
    rest = [linear((points[order[0]]["T"], captures[order[0]][0].rest), [(points[order[-1]]["T"], captures[order[-1]][0].rest)])] if part == "optimizer" else []
    return {"calls": lines, "formulas": template.table, "peak": least([b[0] for b in blocks], features), "left": least([b[1] for b in blocks], features),
            "rest": rest[0] if rest else 0}, template.unsolved


def captured(work, family, options, points, deep):
    jobs = [(work, family, p, BASE, options) for p in points] + [(work, family, points[0], d, options) for d in deep]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: capture(*job), jobs))


def compact(calls, names):
    """Kernels' names by their place in `names`."""
    for line in calls:
        compact(line.get("repeat", []), names)
        if line.get("k") == "launch" and isinstance(line["n"], str) and not line["n"].startswith("="):  # a line may also be a layer's
            line["n"] = names.setdefault(line["n"], len(names))
    return calls


def learn_family(work, family):
    points = [point(text, family) for text in POINTS]
    template = Template(Formulas(points))
    made, names = {}, {}
    for variant, options in VARIANTS.items():
        all_of = captured(work, family, [*options, "--clip"], points, DEEP)
        steps, deep = all_of[:len(points)], all_of[len(points):]
        calls = passes(template, [s.parts["passes"] for s, _ in steps], [(d, s.parts["passes"]) for d, (s, _) in zip(DEEP, deep)])
        made[variant] = {"calls": compact(calls, names), "base": memory(template, [h[0] for _, h in steps], deep[0][1][0]),
                         "memory": memory(template, [h[1][0] for _, h in steps], deep[0][1][1][0]), "asked": queries(steps[0][0])}
        shapes = [parameters_of(s) for s, _ in steps]
        lines = [[template.value([s[i][j] for s in shapes], list(range(len(shapes))), "parameters") for j in range(len(shapes[0][i]))] for i in range(len(shapes[0]))]
        parameters = with_repeats(lines, list(range(len(lines))), repeats(shapes[0], parameters_of(deep[0][0])))
        if made.setdefault("parameters", parameters) != parameters:
            raise SystemExit("learn.py: another list of parameters")
    parameters = made.pop("parameters")
    header = steps[0][0].header
    return {"code": "huggingface", "family": family, "layers": BASE, "learned": {key: header[key] for key in ("torch", "cuda", "device", "packages")},
            "from": {s: [min(p[s] for p in points), max(p[s] for p in points)] for s in points[0]}, "traits": TRAITS[family],
            "parameters": parameters, "names": list(names), "formulas": template.table, "variants": made}, template.unsolved


def learn_lists(work):
    made, unsolved, names = {}, {}, {}
    points = [point(POINTS[k], "llama") for k in (0, 4, 5)]
    for precision, width in (("bfloat16", 2), ("autocast", 4)):
        for optimizer in ("fused", "foreach"):
            options = [*VARIANTS[precision], f"--optimizer={optimizer}"] if optimizer != "fused" else VARIANTS[precision]
            all_of = captured(work, "llama", [*options, "--clip"], points, DEEP)
            parts = (("clip", "clip"), ("optimizer", "fused")) if optimizer == "fused" else (("optimizer", "foreach"),)
            for part, name in parts:
                made[f"{name}/{precision}"], missed = of_lists(part, name, all_of, width)
                compact(made[f"{name}/{precision}"]["calls"], names)
                unsolved |= missed
    return {"code": "huggingface", "names": list(names), "parts": made}, unsolved


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("family", nargs="+")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("captures"))
    a = parser.parse_args()
    for one in a.family:
        learned, unsolved = learn_lists(a.work) if one == "lists" else learn_family(a.work, one)
        with open(a.out / f"{one}.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
            file.write(json.dumps(learned, separators=(",", ":")).encode())
        print(f"{one}: {(a.out / f'{one}.json.gz').stat().st_size} bytes; without a formula: {len(unsolved)}")
        for what, values in unsolved.items():
            print(f"  {what}: {str(values)[:150]}")
