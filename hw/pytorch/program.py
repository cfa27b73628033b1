"""A scenario's program, as `foretrace print FILE --format json` writes it (reports/export/program_writer.h). Needs no PyTorch."""

import json
import operator
import os
import pathlib
import re
import shutil
import subprocess

_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
           "**": operator.pow, "min": min, "max": max, "<": operator.lt, "<=": operator.le, "==": operator.eq,
           "!=": operator.ne}
MOST_CALLS = 2_000_000  # of one thread in one pass, turns of its loops too: they are listed before it begins
NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")


class ProgramError(Exception):
    """The file is no program, or PyTorch cannot run it: says which operation, and why."""

    placed = False  # the message names the operation


def compiled(value):
    """A value of the program as a function of its variables: [process, index of the outermost loop, ...]."""
    if not isinstance(value, dict):
        return lambda variables: value
    if "first" in value:
        index, first = compiled(value["index"]), value["first"]
        return lambda variables: first + index(variables)
    words = value["postfix"]
    for word in words:
        known = isinstance(word, int) or word in _BINARY or word in ("process", "neg", "if")
        if not known and not (isinstance(word, str) and re.fullmatch(r"i[1-9][0-9]*", word)):
            raise ProgramError(f"a value has the word {word!r}, which is none")
    return lambda variables: _value(words, variables)


def _value(words, variables):
    stack = []
    for word in words:
        if isinstance(word, int):
            stack.append(word)
        elif word == "process":
            stack.append(variables[0])
        elif word in _BINARY:
            right = stack.pop()
            stack.append(int(_BINARY[word](stack.pop(), right)))
        elif word == "neg":
            stack.append(-stack.pop())
        elif word == "if":
            otherwise, then = stack.pop(), stack.pop()
            stack.append(then if stack.pop() else otherwise)
        else:
            stack.append(variables[int(word[1:])])
    return stack.pop()


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
        names = [self.name, document["scenario"]["program_hash"], *self.document["environment"]]
        for name in names:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise ProgramError(f"{name!r} is no name of a program, a hash or a variable")
        for key in ("processes", "nodes", "devices", "warmup"):
            if not isinstance(document[key], int) or document[key] < (key != "warmup"):
                raise ProgramError(f"{key!r} is no count: {document[key]!r}")
        if not all(isinstance(value, str) for value in document["environment"].values()):
            raise ProgramError("a variable of the environment is no text")
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
                for index in range(op["times"] if op["ops"] else 0):
                    self._count(op, count)
                    found += self._calls(op["ops"], variables + [index], instance * op["times"] + index, count)
                continue
            self._count(op, count)
            inside = self._calls(op["ops"], variables, instance, count) if "ops" in op else ()
            found.append(Call(op, instance, self._values_of(op, variables), inside))
        return found

    def _count(self, op, count):
        count[0] += 1
        if count[0] > MOST_CALLS:
            raise ProgramError(f"{self.place(op['id'])}: a pass has more than {MOST_CALLS} calls and turns of loops")

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
    is_json = path.suffix == ".json"
    if is_json and settings:
        raise ProgramError(f"{path}: --set is for scenarios; this is a program already")
    try:
        text = path.read_text(encoding="utf-8") if is_json else _printed(path, foretrace, settings)
        return Program(json.loads(text))
    except ProgramError:
        raise
    except (OSError, ValueError) as error:
        raise ProgramError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProgramError(f"{path}: no program that 'foretrace print FILE --format json' writes ({error!r})") from error


def _printed(path, foretrace, settings):
    command = foretrace or os.environ.get("FORETRACE") or shutil.which("foretrace")
    if not command:
        raise ProgramError("'foretrace' is not on the PATH: say where it is with --foretrace, or give the JSON that "
                           f"'foretrace print {path} --format json' writes elsewhere")
    words = [command, "print", str(path), "--format", "json"]
    done = subprocess.run(words + [word for one in settings for word in ("--set", one)], capture_output=True, text=True,
                          errors="replace")
    if done.returncode != 0:
        raise ProgramError(done.stderr.rstrip() or f"{command} ended with {done.returncode}")
    return done.stdout
