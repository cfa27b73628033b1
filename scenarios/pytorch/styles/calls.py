"""A record's calls, each with the operation that made it, as one tree a call: what a style's template is made of."""

import gzip
import json

LEFT_OUT = ("call", "malloc", "free", "host_alloc", "host_free", "begin", "end")  # take no time on the GPU; the host's is between the others
DECLARED = ("sig", "op", "name", "mod", "stream", "thread", "comm")


def with_strides(argument):
    """An operation's argument with the strides of contiguous tensors, too, which records leave out."""
    if isinstance(argument, list):
        return [with_strides(one) for one in argument]
    if not isinstance(argument, dict) or "st" in argument or not argument.get("s"):
        return argument
    strides = [1]
    for size in reversed(argument["s"][1:]):
        strides.insert(0, strides[0] * max(size, 1))
    return {**argument, "st": strides}


class Step:
    """`parts`: {"passes", "clip", "optimizer"}: lists of calls; `rest`: the host's ns behind the last one."""

    def __init__(self, path):
        self.parts, self.header, self.streams = {"passes": [], "clip": [], "optimizer": []}, None, {}
        signatures, operations, names = {}, {}, {}
        at, part = 0, "passes"
        calls = []
        with gzip.open(path, "rt") as file:
            for line in map(json.loads, file):
                kind = line.get("k")
                if kind is None:
                    self.header = line
                elif kind == "sig":
                    signatures[line["i"]] = {"n": line["n"], "in": [with_strides(a) for a in line["in"]]}
                elif kind == "op":
                    operations[line["i"]] = line
                elif kind == "name":
                    names[line["i"]] = line["n"]
                elif kind == "stream":
                    self.streams[line["i"]] = line
                elif kind == "end":
                    self.end, self.memory = line, line["memory"]
                elif kind not in DECLARED and kind not in LEFT_OUT:
                    calls.append(line)
        last_backward = max(i for i, c in enumerate(calls) if "op" in c and operations[c["op"]]["ph"] in ("backward", "recompute"))
        own = sorted(self.end["steps_cpu_ns"])[(len(self.end["steps_cpu_ns"]) - 1) // 2] / self.end["t"]
        self.host = min(own, 1) / self.header["host"]["torch_loop_ns"]  # of an ns: in loops
        latest = {}
        for i, c in enumerate(calls):
            op = operations.get(c.get("op"))
            if part == "passes" and i > last_backward:
                part = "clip"
            if part == "clip" and op and op["ph"] == "optimizer":
                part = "optimizer"
            call = {key: value for key, value in c.items() if key not in ("t", "op", "n", "ops")}
            if c["k"] == "launch":
                call["n"] = names[c["n"]]
            elif "n" in c:
                call["n"] = c["n"]
            if op:
                call["q"] = signatures[op["q"]]
                if op["ph"] != "forward":
                    call["ph"] = op["ph"]
                if latest.get(c["op"]) == part:
                    call["same"] = True  # the operation has made a call of this part before
                latest[c["op"]] = part
            call["dt"] = (c["t"] - at) * self.host
            at = c["t"]
            done = self.parts[part]
            if call["k"] == "launch" and "elementwise_kernel" in call["n"]:
                call["split"] = True  # where a tensor is larger than 2 GiB: several launches, here as one
                if call.get("same") and done and done[-1]["n"] == call["n"]:
                    done[-1]["g3"][0] += call["g3"][0]
                    done[-1]["dt"] += call["dt"]
                    continue
            done.append(call)
        self.rest = (self.end["t"] - at) * self.host


def dimensions(argument):
    if isinstance(argument, list):
        return set().union(*map(dimensions, argument))
    return set(argument["s"]) if isinstance(argument, dict) else set()


def token(call, sizes):
    """What stays the same whatever the sizes are."""
    found = dimensions(call.get("q", {}).get("in", []))
    is_vocabulary = sizes["V"] in found
    name = call["n"].split("<")[0] if call["k"] == "launch" else call.get("f", "")
    return call["k"], name, call.get("q", {}).get("n"), call.get("ph"), call.get("dir"), call.get("th"), call.get("s"), is_vocabulary
