"""A number's formula from its values at several sizes. value() says what a formula means; scenarios/styles/formula.cc says it again for the program.

    {"p": {"B": 1, "S": 1}, "c": 3, "d": 512}     B * S * 3 / 512, rounded up
    and: {"B": 1}                                 added to the product, before it is divided; {}: one
    plus: 1                                       added at the end
    power2: true                                  the next power of two
    times: 32                                     a multiple: behind the rounding
    most: 256                                     an upper limit; "most_by": {"H": 1} divides it, rounded up
    {"by": {"B": 1, "S": 1}, "multiple_of": 256, "is": a, "else": b}
    {"by": {"V": 1}, "steps": [[1024, a], [null, b]]}      a up to 1024, then b: what has no formula"""

import itertools
import math
from fractions import Fraction

import numpy

CLOSE = 1e-3  # of an approximate formula: errors of a rounding in between


def product(powers, sizes):
    value = Fraction(1)
    for symbol, power in powers.items():
        value *= Fraction(sizes[symbol]) ** power
    return value


def value(formula, sizes):
    if not isinstance(formula, dict):
        return formula
    if "multiple_of" in formula:
        return formula["is" if product(formula["by"], sizes) % formula["multiple_of"] == 0 else "else"]
    if "steps" in formula:
        at = product(formula["by"], sizes)
        return next(v for end, v in formula["steps"] if end is None or at <= end)
    made = product(formula["p"], sizes) * formula.get("c", 1)
    if "and" in formula:
        made += product(formula["and"], sizes)
    made = math.ceil(made / formula.get("d", 1))
    made *= formula.get("times", 1)
    if formula.get("power2"):
        made = 1 << (made - 1).bit_length()
    if "most" in formula:
        made = min(made, math.ceil(Fraction(formula["most"]) / product(formula.get("most_by", {}), sizes)))
    return made + formula.get("plus", 0)


def nicest(low, high):
    """The whole number in (low, high] with the most factors of two; None where there is none."""
    for shift in range(40, -1, -1):
        found = math.floor(high) >> shift << shift
        if found > low and found > 0:
            return found
    return None


class Formulas:
    def __init__(self, points):
        self.points = points
        self.symbols = list(points[0])
        self.logs = numpy.log2(numpy.array([[p[s] for s in self.symbols] for p in points], dtype=float))
        powers = [p for p in itertools.product((0, 1, 2, -1), repeat=len(self.symbols)) if 0 < sum(map(abs, p)) <= 5 and sum(x == -1 for x in p) <= 1
                  and sum(x == 2 for x in p) <= 1]
        powers.sort(key=lambda p: sum(abs(x) + (2 if x < 0 else 0) + (1 if x > 1 else 0) for x in p))
        self.powers = [{s: x for s, x in zip(self.symbols, p) if x} for p in powers]
        self.logs_of = numpy.array(powers) @ self.logs.T  # monomials x points
        self.whole = [i for i, p in enumerate(powers) if min(p) >= 0]
        self.small = [i for i in self.whole if sum(powers[i]) <= 2]
        self.known = {}

    def at(self, i, points):
        return [product(self.powers[i], self.points[k]) for k in points]

    def solve(self, values, points):
        key = (tuple(values), tuple(points))
        if key not in self.known:
            self.known[key] = self._solve(list(values), list(points))
        return self.known[key]

    def _solve(self, values, points):
        if len(values) < 2:
            return None
        step = math.gcd(*values) if all(isinstance(v, int) for v in values) else 1
        ways = [lambda: self._exact(values, points, 0), lambda: self._exact(values, points, 1), lambda: self._exact(values, points, -1),
                lambda: self._rounded(values, points, {}, 1), lambda: self._rounded(values, points, {"most": max(values)}, 1),
                lambda: self._power(values, points), lambda: self._sum(values, points), lambda: self._shared(values, points),
                lambda: self._rounded(values, points, {}, 132 * 15), lambda: step > 1 and self._times(values, points, step), lambda: self._close(values, points)]
        return next((found for found in (way() for way in ways) if found), None)

    def _exact(self, values, points, plus):
        values = [v - plus for v in values]
        if min(values) < 1:
            return None
        rest = numpy.log2(numpy.array(values, dtype=float)) - self.logs_of[:, points]
        for i in numpy.flatnonzero(numpy.ptp(rest, axis=1) < 1e-6):
            if len(values) < 3 and i not in self.small:
                continue
            factors = {v / x for v, x in zip(values, self.at(i, points))}
            if len(factors) == 1:
                c, d = factors.pop().as_integer_ratio()
                return {"p": self.powers[i], **({"c": c} if c > 1 else {}), **({"d": d} if d > 1 else {}), **({"plus": plus} if plus else {})}
        return None

    def _divisor(self, xs, values):
        """d so that ceil(x / d) is the value, for all."""
        return nicest(max(x / v for x, v in zip(xs, values)) - Fraction(1, 10 ** 9), min((x / (v - 1) for x, v in zip(xs, values) if v > 1), default=Fraction(2 ** 20)) - Fraction(1, 10 ** 9))

    def _rounded(self, values, points, more, odd, c=1):
        """`odd`: of the divisor the largest factor that is no power of two."""
        top = more.get("most", math.inf)
        free = [j for j, v in enumerate(values) if v < top]
        if len({values[j] for j in free}) < 2 or min(values) < 1:
            return None
        some = [j for j in free if values[j] > 1]
        logs = numpy.log2(numpy.array([values[j] for j in some], dtype=float))
        for i in self.whole if len(values) > 2 else self.small:
            rest = self.logs_of[i, [points[j] for j in some]] - logs
            if numpy.ptp(rest) > 1.01:
                continue
            xs = [c * x for x in self.at(i, points)]
            d = self._divisor([xs[j] for j in free], [values[j] for j in free])
            found = d and {"p": self.powers[i], **({"c": c} if c > 1 else {}), "d": d, **more}
            if found and d // (d & -d) <= odd and self.fits(found, values, points):
                return found
        return None

    def _times(self, values, points, step):
        top = {"most": max(values)}
        for shift in range(step.bit_length() - 1, 4, -1):
            for more in ({}, top):
                for c in (1, 64):
                    found = self._rounded([v >> shift for v in values], points, {"most": top["most"] >> shift} if more else {}, 2 ** 30, c) if all(
                        v % (1 << shift) == 0 for v in values) else None
                    if found:
                        return {**found, "times": 1 << shift, **more}
        return None

    def fits(self, formula, values, points):
        return all(value(formula, self.points[k]) == v for k, v in zip(points, values))

    def _power(self, values, points):
        if any(v & (v - 1) for v in values) or min(values) < 1:
            return None
        for i in self.small:
            for shift in range(0, 20):
                # the next power of two; the nearest one; the one before
                for part in ({"d": 1 << shift}, {"c": 1024, "d": 1448 << shift}, {"and": {}, "d": 2 << shift}):
                    for more in ({}, {"most": max(values)}):
                        found = {"p": self.powers[i], **part, "power2": True, **more}
                        if self.fits(found, values, points):
                            return found
        return None

    def _sum(self, values, points):
        for i in self.small:
            for j in self.small:
                if not self.powers[j].keys() < self.powers[i].keys():
                    continue
                xs = [a + b for a, b in zip(self.at(i, points), self.at(j, points))]
                d = min(values) > 0 and self._divisor(xs, values)
                found = d and {"p": self.powers[i], "and": self.powers[j], **({"d": d} if d > 1 else {})}
                if found and d & (d - 1) == 0 and self.fits(found, values, points):
                    return found
        return None

    def _shared(self, values, points):
        """A grid that has at most so many blocks in all: a multiple of the GPU's 132 multiprocessors."""
        for i in self.small:
            for d in (1 << shift for shift in range(0, 16)):
                made = [math.ceil(x / d) for x in self.at(i, points)]
                less = [j for j, (m, v) in enumerate(zip(made, values)) if m != v]
                if not less or len(points) - len(less) < 3 or any(made[j] < values[j] for j in less):
                    continue
                for o in self.small:
                    others = self.at(o, points)
                    low, high = max((values[j] - 1) * others[j] for j in less), min(values[j] * others[j] for j in less)
                    found = {"p": self.powers[i], "d": d, "most": int(high // 132 * 132), "most_by": self.powers[o]}
                    if found["most"] > low and self.fits(found, values, points):
                        return found
        return None

    def _close(self, values, points):
        """Within a rounding that was made in between."""
        if min(values) < 1 / CLOSE:
            return None
        rest = numpy.log2(numpy.array(values, dtype=float)) - self.logs_of[:, points]
        for i in self.whole:
            if numpy.ptp(rest[i]) < CLOSE:
                d = round(2 ** -numpy.mean(rest[i]) * 1024)
                return {"p": self.powers[i], "c": 1024, "d": d, "close": True} if d else None
        return None

    def _multiple(self, values, points):
        """Two values of which one is where a product of symbols is a multiple of a power of two."""
        kinds = [v for k, v in enumerate(values) if v not in values[:k]]
        if len(kinds) != 2:
            return None
        for i in self.small:
            xs = self.at(i, points)
            for shift in range(3, 12):
                whole = [x % (1 << shift) == 0 for x in xs]
                for a, b in (kinds, kinds[::-1]):
                    if [a if w else b for w in whole] == values:
                        return {"by": self.powers[i], "multiple_of": 1 << shift, "is": a, "else": b}
        return None

    def steps(self, values, points):
        """Values that change where a product of symbols grows: of the product that needs the fewest steps."""
        best = None
        for i in self.small:
            order = sorted(range(len(points)), key=lambda j: self.logs_of[i, points[j]])
            runs = []
            for j in order:
                x = self.logs_of[i, points[j]]
                if runs and runs[-1][2] == values[j]:
                    runs[-1][1] = x
                elif runs and abs(runs[-1][1] - x) < 1e-9:
                    break
                else:
                    runs.append([x, x, values[j]])
            else:
                if best is None or len(runs) < len(best[1]):
                    best = (i, runs)
        whole = self._multiple(values, points) if best is None or len(best[1]) > 2 else None
        if best is None or whole:
            return whole
        i, runs = best
        ends = [round(2 ** ((a[1] + b[0]) / 2)) for a, b in zip(runs, runs[1:])] + [None]
        return {"by": self.powers[i], "steps": [[end, run[2]] for end, run in zip(ends, runs)]}
