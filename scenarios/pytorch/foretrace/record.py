"""From recorded steps to the file of calls (scenarios/pytorch/README.md)."""

import gzip
import io
import json
import pathlib
import re
import statistics

from .emulation import NONE
from .whole import write_whole

_EVENT = re.compile(r'"e":\d+')
DECLARATIONS = ('"k":"stream"', '"k":"comm"')


def kind(text):
    return text[5:text.index('"', 5)]  # texts begin with "k":"


class Threads:
    """Which of the library's threads are the program's: the main one, autograd's, and those that launch."""

    def __init__(self, emulation, calls):
        launching = {c.thread for c in calls if kind(emulation.text(c.text)) in ("launch", "gemm", "lib")}
        self.numbers, self.names, self.left_out = {}, [], {}
        for c in calls:
            if c.thread in self.numbers or c.thread in self.left_out:
                continue
            name = emulation.thread_name(c.thread)
            if name == "main" or "autograd" in name or c.thread in launching:
                self.numbers[c.thread] = None
            else:
                self.left_out[c.thread] = name
        order = sorted(self.numbers, key=lambda t: (emulation.thread_name(t) != "main", t))
        for number, thread in enumerate(order):
            self.numbers[thread] = number
            self.names.append(emulation.thread_name(thread))

    def keep(self, calls):
        return [c for c in calls if c.thread in self.numbers]


# What every step does alike: work for the device, and what orders it. Allocations, events that are made and asked differ from step to step.
WORK = ("launch", "gemm", "lib", "copy", "memset", "coll", "sync", "graph_launch", "host_func")
UNUSUAL = 1.25  # a step that took so much more than the fastest did something of its own: a first call, a collection of garbage
WAITS_NS = 2_000_000  # a gap so much longer than its work, in each step, is no accident


def shape_of(emulation, calls):
    """(position, what it is) of the calls that are work: they must be alike in two steps for one's times to be the other's."""
    cache = {}
    for c in calls:
        if c.text not in cache:
            text = emulation.text(c.text)
            cache[c.text] = _EVENT.sub("", text) if kind(text) in WORK else None
    return [(i, (cache[c.text], c.name, c.stream)) for i, c in enumerate(calls) if cache[c.text] is not None]


def host_times(emulation, profiled, plain):
    """t of each call of the profiled step, and of its end; also from how many plain steps, which did the same work, they are. Steps are (calls, ns, ns on a processor).

    A gap between two calls is the mean over the steps of the time on a processor: other programs of this host are not in it. Where the host waited
    in every step (for a file, for a worker) it is the shortest time by the clock. A call that is no work lies in its gap as it does in the profiled step."""
    shape = shape_of(emulation, profiled[0])
    expected = [what for _, what in shape]
    same = []
    for calls, ns, cpu_ns in plain:
        here = shape_of(emulation, calls)
        if [what for _, what in here] == expected:
            same.append([(calls[i].t, calls[i].cpu) for i, _ in here] + [(ns, cpu_ns)])
    calls, ns, cpu_ns = profiled
    least = min((step[-1][1] for step in same), default=0)
    same = [step for step in same if step[-1][1] <= least * UNUSUAL]
    if not same:  # the profiled step's own, as much shorter as steps without the profiler are
        share = min([step[2] for step in plain] + [ns]) / max(ns, 1)
        return [round(c.t * share) for c in calls], round(ns * share), 0
    anchors, t = [(-1, 0, 0)], 0.0  # (position, the profiled step's t, t)
    for i, position in enumerate([p for p, _ in shape] + [len(calls)]):
        before = [step[i - 1] if i else (0, 0) for step in same]
        gap = statistics.fmean(step[i][1] - b[1] for step, b in zip(same, before))
        clock = min(step[i][0] - b[0] for step, b in zip(same, before))
        t += max(clock if clock > gap + WAITS_NS else gap, 0)
        anchors.append((position, calls[position].t if position < len(calls) else ns, t))
    return *_between(calls, anchors), len(same)


def _between(calls, anchors):
    times = []
    for (first, begin, t), (last, end, until) in zip(anchors, anchors[1:]):
        for i in range(first + 1, last):
            share = (calls[i].t - begin) / (end - begin) if end > begin else 0
            times.append(round(t + min(max(share, 0), 1) * (until - t)))
        if last < len(calls):
            times.append(round(until))
    return times, round(anchors[-1][2])


class Writer:
    """Lines of a record; each declaration once, before its first use."""

    def __init__(self, emulation, declared):
        self.emulation, self.declared = emulation, declared  # (kind, i) -> JSON object
        self.lines, self.said = [], set()
        self.signatures, self.modules = {}, {}

    def add(self, **record):
        self.lines.append(json.dumps(record, separators=(",", ":")))

    def declare(self, what, i):
        if (what, i) in self.said:
            return
        self.said.add((what, i))
        if what == "name":
            self.add(k="name", i=i, n=self.emulation.kernel_name(i))
        else:
            self.add(**self.declared.get((what, i), {"k": what, "i": i}))

    def interned(self, what, table, text, line):
        if text not in table:
            table[text] = len(table)
            self.lines.append('{"k":"%s","i":%d,%s}' % (what, table[text], line))
        return table[text]

    def operation(self, i, parent, op, thread):
        text = json.dumps(op.name) + ',"in":' + json.dumps(op.arguments, separators=(",", ":"))
        q = self.interned("sig", self.signatures, text, '"n":' + text)
        line = '{"k":"op","i":%d' % i
        if parent is not None:
            line += ',"p":%d' % parent
        line += ',"q":%d,"ph":"%s"' % (q, op.phase)
        if op.module is not None:
            name = json.dumps(op.module)
            line += ',"m":%d' % self.interned("mod", self.modules, name, '"n":' + name)
        self.lines.append(line + (',"th":%d}' % thread if thread else "}"))

    def call(self, c, t, thread=0, op=None):
        text = self.emulation.text(c.text)
        if text.startswith(DECLARATIONS):
            return
        if c.name != NONE:
            self.declare("name", c.name)
        if c.stream != NONE:
            self.declare("stream", c.stream)
        line = "{" + text
        if t is not None:
            line += ',"t":%d' % t
        if c.stream != NONE:
            line += ',"s":%d' % c.stream
        if c.comm != NONE:
            self.declare("comm", c.comm)
            line += ',"c":%d' % c.comm
        if c.graph != NONE:
            line += ',"g":%d' % c.graph
        if thread:
            line += ',"th":%d' % thread
        if op is not None:
            line += ',"op":%d' % op
        self.lines.append(line + "}")


def declarations(emulation, calls):
    """{(kind, i): object} of streams and communicators among the calls."""
    found, texts = {}, {}
    for c in calls:
        if c.text not in texts:
            text = emulation.text(c.text)
            texts[c.text] = json.loads("{" + text + "}") if text.startswith(DECLARATIONS) else None
        if texts[c.text]:
            found[(texts[c.text]["k"], texts[c.text]["i"])] = dict(texts[c.text])
    return found


def graph_bodies(emulation, before, within):
    """Of the calls before the step those that belong to graphs which it launches."""
    def number(c):
        return json.loads("{" + emulation.text(c.text) + "}")["g"]
    launched = {number(c) for c in within if kind(emulation.text(c.text)) == "graph_launch"}
    if not launched:
        return []
    return [c for c in before if c.graph in launched or (kind(emulation.text(c.text)) == "graph" and number(c) in launched)]


def thread_of_operations(calls, operations, threads):
    """{the profiler's thread: ours}: those whose operations the calls fall into."""
    votes = {}
    by_thread = {}
    for op in operations:
        if op.depth == 0:
            by_thread.setdefault(op.thread, []).append(op)
    for c in calls:
        for thread, ops in by_thread.items():
            if _containing(ops, c.clock):
                votes.setdefault(thread, {}).setdefault(c.thread, 0)
                votes[thread][c.thread] += 1
    found = {thread: threads.numbers[max(n, key=n.get)] for thread, n in votes.items()}
    order = sorted({op.thread for op in operations})  # of some all operations lie in one that began before the profiler; a thread whose operations make no call: the main one is the profiler's first
    for thread in order:
        found.setdefault(thread, 0 if thread == order[0] else 1)
    return found


def _containing(operations, clock):
    low, high = 0, len(operations)
    while low < high:
        middle = (low + high) // 2
        if operations[middle].begin <= clock:
            low = middle + 1
        else:
            high = middle
    return low > 0 and operations[low - 1].end >= clock


def join(writer, calls, times, operations, threads, marks):
    """Calls and operations in the order of the clock; each call with the innermost operation of its thread that it falls into. Returns what the host read
    and a rule decided: (JSON of the read, the operations around it, outermost first)."""
    reads = []
    number_of = thread_of_operations(calls, operations, threads)
    stacks, next_op, i = {}, 0, 0
    marks = list(marks)

    def open_until(clock):
        nonlocal next_op, i
        while next_op < len(operations) and operations[next_op].begin <= clock:
            op = operations[next_op]
            next_op += 1
            thread = number_of[op.thread]
            stack = stacks.setdefault(thread, [])
            while stack and stack[-1][1] <= op.begin:
                stack.pop()
            writer.operation(i, stack[-1][0] if stack else None, op, thread)
            stack.append((i, op.end, op))
            i += 1

    for position, (c, t) in enumerate(zip(calls, times)):
        open_until(c.clock)
        while marks and marks[0][0] <= position:
            _, at, name, begins = marks.pop(0)
            writer.add(k="begin" if begins else "end", region=name, t=t)
        thread = threads.numbers[c.thread]
        stack = stacks.get(thread, [])
        while stack and stack[-1][1] < c.clock:
            stack.pop()
        writer.call(c, t, thread, stack[-1][0] if stack else None)
        text = writer.emulation.text(c.text)
        if '"from":"rule"' in text:
            reads.append((json.loads("{" + text + "}"), [op for _, _, op in stack]))
    open_until(float("inf"))
    for _, at, name, begins in marks:
        writer.add(k="begin" if begins else "end", region=name, t=times[-1] if times else at)
    return reads


SIZED_BY_DATA = ("aten::nonzero", "aten::masked_select", "aten::index", "aten::unique", "aten::_unique2", "aten::repeat_interleave")


def unsure(reads):
    """Reads for which no rule is likely to be right: integers, sizes that data decide, a comparison outside of any module (a loop's end)."""
    def doubtful(read, operations):
        inner = operations[-1] if operations else None
        whole = inner and inner.arguments and isinstance(inner.arguments[0], dict) and inner.arguments[0]["d"] in ("i64", "i32", "i16", "u8", "i8")
        sized = any(op.name in SIZED_BY_DATA for op in operations)
        ends = read["n"] == 1 and "CompareEq" in read.get("after", "") and inner is not None and inner.module is None
        return whole or sized or ends
    return [read for read, operations in reads if doubtful(read, operations)]


def write(path, lines):
    """The file, packed; the same bytes for the same lines. A scenario of the record that was there goes: a new one is written behind all records."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0, filename="") as file:
        file.write("".join(line + "\n" for line in lines).encode())
    write_whole(path, packed.getvalue(), spoils=[pathlib.Path(path).with_name("step.yaml")])
