"""A scenario's program, as `foretrace print FILE --format json` writes it (reports/export/program_writer.h). Needs no PyTorch."""

import json
import os
import pathlib
import shutil
import subprocess

_BINARY = {"+": "({} + {})", "-": "({} - {})", "*": "({} * {})", "//": "({} // {})", "%": "({} % {})",
           "**": "({} ** {})", "min": "min({}, {})", "max": "max({}, {})", "<": "int({} < {})",
           "<=": "int({} <= {})", "==": "int({} == {})", "!=": "int({} != {})"}
MOST_CALLS = 2_000_000  # of one thread in one pass: they are listed before it begins


class ProgramError(Exception):
    """The file is no program, or PyTorch cannot run it: says which operation, and why."""


def compiled(value):
    """A value of the program as a function of its variables: [process, index of the outermost loop, ...]."""
    if not isinstance(value, dict):
        return lambda variables: value
    if "first" in value:
        index, first = compiled(value["index"]), value["first"]
        return lambda variables: first + index(variables)
    stack = []
    for word in value["postfix"]:
        if isinstance(word, int):
            stack.append(str(word))
        elif word == "process":
            stack.append("v[0]")
        elif word[:1] == "i" and word[1:].isdigit():
            stack.append(f"v[{int(word[1:])}]")
        elif word == "neg":
            stack.append(f"(-{stack.pop()})")
        elif word == "if":
            otherwise, then, condition = stack.pop(), stack.pop(), stack.pop()
            stack.append(f"({then} if {condition} else {otherwise})")
        elif word in _BINARY:
            right, left = stack.pop(), stack.pop()
            stack.append(_BINARY[word].format(left, right))
        else:
            raise ProgramError(f"a value has the word {word!r}, which is none")
    return eval(f"lambda v: {stack.pop()}", {"__builtins__": {}, "min": min, "max": max, "int": int})  # noqa: S307


class Call:
    """One execution of an operation in one process: its values are numbers."""

    __slots__ = ("op", "kind", "id", "instance", "values", "inside")

    def __init__(self, op, instance, values, inside):
        self.op, self.kind, self.id, self.instance = op, op["kind"], op["id"], instance
        self.values, self.inside = values, inside

    def __getattr__(self, name):
        return self.values[name]


class Program:
    def __init__(self, document):
        if not isinstance(document, dict) or document.get("kind") != "program" or document.get("schema_version") != 1:
            raise ProgramError("no program of schema version 1: write one with 'foretrace print FILE --format json'")
        self.document = document
        self.name, self.rows = document["scenario"]["name"], document["ops"]
        for key in ("processes", "nodes", "devices", "warmup", "environment", "streams", "events", "buffers",
                    "communicators", "comms", "signals", "graphs", "barriers", "threads"):
            setattr(self, key, document[key])
        self._values = {}

    def threads_of(self, process):
        return [index for index, thread in enumerate(self.threads) if process in thread["processes"]]

    def place(self, id):
        """"scenarios/x.yaml:14: nccl_recv" """
        row = self.rows[id]
        return f"{self.document['scenario']['file']}:{row['line']}: {row['kind']}"

    def walk(self, ops=None):
        """Every operation once, blocks before what is inside them."""
        if ops is None:
            for thread in self.threads:
                yield from self.walk(thread["ops"])
            return
        for op in ops:
            yield op
            yield from self.walk(op.get("ops", ()))

    def calls(self, thread, process):
        """What a host thread of a process does in a pass, in order. Of a region, a group and a capture `inside` is what
        they hold; loops are gone around."""
        count = [0]
        return self._calls(self.threads[thread]["ops"], [process], 0, count)

    def _calls(self, ops, variables, instance, count):
        found = []
        for op in ops:
            if op["kind"] == "repeat":
                for index in range(op["times"]):
                    found += self._calls(op["ops"], variables + [index], instance * op["times"] + index, count)
                continue
            count[0] += 1
            if count[0] > MOST_CALLS:
                raise ProgramError(f"{self.place(op['id'])}: a pass has more than {MOST_CALLS} calls")
            inside = self._calls(op["ops"], variables, instance, count) if "ops" in op else ()
            found.append(Call(op, instance, self._values_of(op, variables), inside))
        return found

    def _values_of(self, op, variables):
        plans = self._values.get(op["id"])
        if plans is None:
            plans = self._values[op["id"]] = [
                (key, [compiled(one) for one in value] if isinstance(value, list) else compiled(value))
                for key, value in op.items() if key not in ("ops", "id", "kind", "label")]
        return {key: [one(variables) for one in plan] if isinstance(plan, list) else plan(variables)
                for key, plan in plans}

    def buffer_types(self):
        """The element type that each buffer is filled with: that of the first operation that computes on it."""
        types = {}
        for op in self.walk():
            if "type" not in op:
                continue
            for key in ("a", "b", "c", "src", "dst", "send", "recv", "buffer", "sources"):
                for one in op[key] if key == "sources" and key in op else [op.get(key)]:
                    if one is None:
                        continue
                    first = one["first"] if isinstance(one, dict) else one
                    family = self.buffers[first]["name"].split("(")[0]
                    for number, buffer in enumerate(self.buffers):
                        if number == first or (isinstance(one, dict) and buffer["name"].split("(")[0] == family):
                            types.setdefault(number, op["type"])
        return types


def read_program(file, foretrace=None, settings=()):
    """A program from its JSON, or from a scenario: then the command `foretrace` reads it."""
    path = pathlib.Path(file)
    if path.suffix == ".json":
        try:
            return Program(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise ProgramError(f"{path}: {error if isinstance(error, (OSError, ValueError)) else 'no program'}") from error
    command = foretrace or os.environ.get("FORETRACE") or shutil.which("foretrace")
    if not command:
        raise ProgramError("'foretrace' is not on the PATH: say where it is with --foretrace, or give the JSON that "
                           f"'foretrace print {file} --format json' writes elsewhere")
    words = [command, "print", str(path), "--format", "json"]
    done = subprocess.run(words + [word for one in settings for word in ("--set", one)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ProgramError(done.stderr.rstrip())
    return Program(json.loads(done.stdout))
