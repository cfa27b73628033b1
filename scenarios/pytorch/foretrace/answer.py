"""What the program answered, as an object for notebooks: the JSON itself, rows, a table, a plot, HTML. Needs nothing; pandas and matplotlib where they are installed."""

import html
import importlib.util
import re

DIAGNOSTIC = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?:error|warning): (?P<message>.*)$", re.M)
MOST_SHOWN = 60  # rows of an answer in a notebook


class ForetraceError(RuntimeError):
    """The program refused: `problems` are its errors, each with file, line, column and message; `code` its exit code."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code
        self.problems = [dict(m.groupdict(), line=int(m["line"]), column=int(m["column"])) for m in DIAGNOSTIC.finditer(text)]
        first = self.problems[0] if self.problems else {}
        self.file, self.line, self.column = first.get("file"), first.get("line"), first.get("column")


def _text(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


class Answer(dict):
    """The program's JSON, and views of it. `rows` are plain dictionaries; `notes` what it said beside; `good` is False where its exit code was 1."""

    title, x, y = "", None, None
    bands = ()  # names of the low and the high end of y

    def __init__(self, document, rows, notes="", good=True):
        super().__init__(document)
        self.rows, self.notes, self.good = rows, notes, good

    def columns(self):
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def table(self):
        """A pandas.DataFrame; where pandas is not installed, the rows."""
        if importlib.util.find_spec("pandas"):
            import pandas
            return pandas.DataFrame(self.rows, columns=self.columns())
        return self.rows

    def plot(self, axes=None):
        """Draws it by matplotlib, into `axes` or into new ones, which are returned. ImportError where it is not installed."""
        if not importlib.util.find_spec("matplotlib"):
            raise ImportError("plot() needs matplotlib: pip install matplotlib")
        if axes is None:
            import matplotlib.pyplot
            axes = matplotlib.pyplot.subplots()[1]
        self._draw(axes)
        axes.set_title(self.title)
        return axes

    def _draw(self, axes):
        """Bars, with bands where there are any."""
        names = [_text(row.get(self.x)) for row in self.rows]
        values = [row[self.y] for row in self.rows]
        errors = None
        if self.bands and all(row.get(name) is not None for row in self.rows for name in self.bands):
            low, high = self.bands
            errors = [[row[self.y] - row[low] for row in self.rows], [row[high] - row[self.y] for row in self.rows]]
        axes.bar(range(len(names)), values, yerr=errors)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
        axes.set_ylabel(self.y)
        axes.set_ylim(bottom=0)

    def __repr__(self):
        return f"<{type(self).__name__}: {self.title}, {len(self.rows)} rows>"

    def __str__(self):
        columns = self.columns()
        cells = [columns] + [[_text(row.get(name)) for name in columns] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        return "\n".join([self.title] + ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells])

    def _repr_html_(self):
        columns = self.columns()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_text(row.get(name)))}</td>" for name in columns) + "</tr>" for row in self.rows[:MOST_SHOWN])
        left = len(self.rows) - MOST_SHOWN
        more = f"<p>and {left} more rows: .rows has them</p>" if left > 0 else ""
        notes = f"<details><summary>notes</summary><pre>{html.escape(self.notes)}</pre></details>" if self.notes else ""
        return f"<p><b>{html.escape(self.title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}{notes}"


class Simulation(Answer):
    """Regions with their bands; of a training step also `training_step` in the document."""

    x, y, bands = "region", "us", ("low_us", "high_us")

    def __init__(self, document, **said):
        def us(ns):
            return None if ns is None else ns * 1e-3
        rows = [{"region": r["region"], "line": r["line"], "instance": r["instance"], "us": us(r.get("predicted_ns")), "low_us": us(r.get("low_ns")),
                 "high_us": us(r.get("high_ns")), "process": r.get("process")} for r in document.get("regions", [])]
        super().__init__(document, rows, **said)
        self.title = f"{document.get('scenario', '')} on {document.get('machine', '')}"
        step = document.get("training_step")
        if step:
            self.title += f": {step['seconds'] * 1e3:.1f} ms a step, {step['tokens_per_second']:.0f} tokens/s, limited by {step['limited_by']}"


class Plan(Answer):
    """The best layouts, best first."""

    x, y, bands = "layout", "step_s", ("low_s", "high_s")

    def __init__(self, document, **said):
        rows = [{name: value for name, value in row.items() if not isinstance(value, (dict, list))} for row in document.get("rows", [])]
        super().__init__(document, rows, **said)
        self.title = f"{document.get('model', '')} on {document.get('machine', '')}"


class Sweep(Answer):
    """A row for each point and region."""

    x, y, bands = "point", "us", ("low_us", "high_us")

    def __init__(self, lines, **said):
        points = [line for line in lines if "point" in line]
        rows = [{"point": p["point"], "machine": p.get("machine"), **p.get("set", {}), **p.get("with", {}), "region": r["name"], "us": r.get("us"),
                 "low_us": r.get("low_us"), "high_us": r.get("high_us"), "ratio": r.get("ratio")} for p in points for r in p.get("regions", [])]
        super().__init__({"points": points, **(lines[0] if lines and "point" not in lines[0] else {})} if lines else {}, rows, **said)
        self["points"] = points
        self.title = f"sweep of {self.get('file', '')}: {len(points)} points"

    def _draw(self, axes):
        for name in dict.fromkeys(row["region"] for row in self.rows):
            mine = [row for row in self.rows if row["region"] == name]
            axes.plot([row["point"] for row in mine], [row["us"] for row in mine], marker="o", label=name)
        axes.set(xlabel="point", ylabel="us")
        axes.legend()


class Comparison(Answer):
    """Regions, predicted beside measured."""

    x, y = "region", "error"

    def __init__(self, document, **said):
        def us(side):
            return None if not side else side["median_ns"] * 1e-3
        rows = [{"region": r["name"], "line": r["line"], "first_us": us(r.get("first")), "second_us": us(r.get("second")), "error": r.get("error"),
                 "standing": r.get("standing"), "verdict": r.get("verdict")} for r in document.get("regions", [])]
        super().__init__(document, rows, **said)
        self.title = f"{document.get('scenario', {}).get('name', '')}: {document.get('first', {}).get('name')} against {document.get('second', {}).get('name')}"

    def _draw(self, axes):
        both = [row for row in self.rows if row["first_us"] and row["second_us"]]
        axes.loglog([row["second_us"] for row in both], [row["first_us"] for row in both], "o")
        ends = [f(row[side] for row in both for side in ("first_us", "second_us")) for f in (min, max)]
        axes.plot(ends, ends, linewidth=1)
        axes.set(xlabel=f"{self['second']['name']} us", ylabel=f"{self['first']['name']} us")


class NcclTests(Answer):
    """nccl-tests' table, predicted."""

    x, y = "size_bytes", "busbw_gbps"

    def __init__(self, document, **said):
        super().__init__(document, list(document.get("rows", [])), **said)
        operation = self.rows[0] if self.rows else {}
        self.title = f"{operation.get('op', '')} of {operation.get('ranks', '')} ranks on {document.get('machine', '')}"

    def _draw(self, axes):
        axes.plot([row[self.x] for row in self.rows], [row[self.y] for row in self.rows], marker="o")
        axes.set_xscale("log", base=2)
        axes.set(xlabel="bytes", ylabel="bus bandwidth, GB/s")
