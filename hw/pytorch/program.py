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
# What a scenario may set, as scenarios/program/environment_rules.h has it (a test compares the two): any other one, as
# PYTHONPATH or LD_PRELOAD, would run another program.
VARIABLES = frozenset((
    "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_MAX_COPY_CONNECTIONS", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
    "CUDA_SCALE_LAUNCH_QUEUES", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS", "NCCL_LL128_NTHREADS", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
    "NCCL_BUFFSIZE", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_PCI_CHUNKSIZE",
    "NCCL_P2P_NVL_CHUNKSIZE", "NCCL_P2P_LL_THRESHOLD", "NCCL_P2P_DIRECT_DISABLE", "NCCL_P2P_USE_CUDA_MEMCPY",
    "NCCL_P2P_PXN_LEVEL", "NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER",
    "NCCL_CHUNK_SIZE", "NCCL_NVLS_ENABLE", "NCCL_NVLS_NCHANNELS", "NCCL_NVLS_CHUNKSIZE",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE", "NCCL_PAT_ENABLE", "NCCL_LL128_C2C", "NCCL_COLLNET_ENABLE", "NCCL_NET_OVERHEAD",
    "NCCL_NET_GDR_LEVEL", "NCCL_CROSS_NIC", "NCCL_PXN_DISABLE", "NCCL_NVB_DISABLE", "NCCL_SHM_DISABLE",
    "NCCL_CUMEM_ENABLE", "NCCL_CGA_CLUSTER_SIZE", "NCCL_GRAPH_MIXING_SUPPORT", "NCCL_GRAPH_REGISTER",
    "NCCL_LOCAL_REGISTER", "NCCL_LEGACY_CUDA_REGISTER", "NCCL_LAUNCH_MODE", "NCCL_LAUNCH_ORDER_IMPLICIT",
    "NCCL_RUNTIME_CONNECT", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
    "NCCL_PROFILER_PLUGIN", "NCCL_MNNVL_ENABLE", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_TIMESTAMP_FORMAT",
    "NCCL_DEBUG_TIMESTAMP_LEVELS", "NCCL_SET_THREAD_NAME", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_NTHREADS", "NCCL_SOCKET_RETRY_CNT", "NCCL_SOCKET_RETRY_SLEEP_MSEC", "NCCL_NSOCKS_PERTHREAD",
    "NCCL_OOB_NET_ENABLE", "NCCL_OOB_NET_IFNAME", "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_COMM_BLOCKING",
    "NCCL_IGNORE_CPU_AFFINITY", "NCCL_IGNORE_DISABLED_P2P", "NCCL_CHECK_POINTERS", "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_CTA_POLICY", "NCCL_DMABUF_ENABLE", "NCCL_GDRCOPY_ENABLE", "NCCL_GDR_FLUSH_DISABLE",
    "NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE", "NCCL_IB_AR_THRESHOLD",
    "NCCL_IB_CUDA_SUPPORT", "NCCL_IB_ECE_ENABLE", "NCCL_IB_FIFO_TC", "NCCL_IB_GID_INDEX", "NCCL_IB_MERGE_NICS",
    "NCCL_IB_MERGE_VFS", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_IB_PKEY", "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_RETURN_ASYNC_EVENTS", "NCCL_IB_SL",
    "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_TC", "NCCL_IB_TIMEOUT", "NCCL_IB_USE_INLINE", "NCCL_IB_WARN_RAIL_LOCAL",
    "NCCL_NET_DISABLE_INTRA", "NCCL_NET_FORCE_FLUSH", "NCCL_NET_GDR_C2C", "NCCL_NET_GDR_READ",
    "NCCL_NET_MERGE_LEVEL", "NCCL_NET_OPTIONAL_RECV_COMPLETION", "NCCL_NET_SHARED_BUFFERS", "NCCL_NET_SHARED_COMMS",
    "NCCL_PROXY_APPEND_BATCH_SIZE", "NCCL_RAS_ENABLE", "NCCL_SHM_USE_CUDA_MEMCPY", "NCCL_SHM_LOCALITY",
    "NCCL_SINGLE_RING_THRESHOLD", "NCCL_TREE_THRESHOLD", "NCCL_MAX_NRINGS", "NCCL_MIN_NRINGS",
    "NCCL_UID_STAGGER_RATE", "NCCL_UID_STAGGER_THRESHOLD", "NCCL_WIN_ENABLE", "NCCL_WORK_FIFO_DEPTH",
    "NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT",
))
LARGEST = 2**63  # values are 64 bits wide
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
        index, first = compiled(value.get("index")), value["first"]
        if not _is_number(first) or value.get("index") is None:
            raise ProgramError(f"{value!r} is no reference: it has numbers 'first' and 'index'")
        return lambda variables: first + index(variables)
    words = value.get("postfix")
    if not isinstance(words, list):
        raise ProgramError(f"{value!r} is no value: it has no list 'postfix'")
    depth = 0
    for word in words:
        depth += {"neg": 0, "if": -2}.get(word, -1 if word in _BINARY else 1) if isinstance(word, str) else 1
        if depth < 1:
            raise ProgramError(f"a value takes more than it has at {word!r}: {repr(words)[:200]}")
        known = _is_number(word) or (isinstance(word, str) and (word in _BINARY or word in ("process", "neg", "if") or
                                                                re.fullmatch(r"i[1-9][0-9]{0,3}", word)))
        if not known:
            raise ProgramError(f"a value has the word {word!r}, which is none")
    if depth != 1:
        raise ProgramError(f"a value is {depth} numbers, not one: {repr(words)[:200]}")
    return lambda variables: _value(words, variables)


def _is_number(value):
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _binary(word, left, right):
    if word in ("//", "%") and right == 0:
        raise ProgramError(f"a value divides {left} by 0")
    if word == "**" and (right < 0 or (abs(left) > 1 and right > 63)):
        raise ProgramError(f"a value is {left} to the power of {right}")
    result = int(_BINARY[word](left, right))
    if abs(result) > LARGEST:
        raise ProgramError(f"a value does not fit into 64 bits: {left} {word} {right}")
    return result


def _value(words, variables):
    stack = []
    for word in words:
        if isinstance(word, int):
            stack.append(word)
        elif word == "process":
            stack.append(variables[0])
        elif word in _BINARY:
            right = stack.pop()
            stack.append(_binary(word, stack.pop(), right))
        elif word == "neg":
            stack.append(-stack.pop())
        elif word == "if":
            otherwise, then = stack.pop(), stack.pop()
            stack.append(then if stack.pop() else otherwise)
        elif int(word[1:]) < len(variables):
            stack.append(variables[int(word[1:])])
        else:
            raise ProgramError(f"a value names the turn of loop {word[1:]}, and {len(variables) - 1} are around it")
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
        for key in ("scenario", "ops", "environment"):
            if key not in document:
                raise ProgramError(f"no program: it has no {key!r}")
        self.document = document
        self.name, self.rows = document["scenario"]["name"], document["ops"]
        names = [self.name, document["scenario"]["program_hash"], *self.document["environment"]]
        for name in names:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise ProgramError(f"{name!r} is no name of a program, a hash or a variable")
        for key in ("processes", "nodes", "devices", "warmup"):
            if not _is_number(document.get(key)) or document[key] < (key != "warmup"):
                raise ProgramError(f"{key!r} is no count: {document.get(key)!r}")
        if not all(isinstance(value, str) for value in document["environment"].values()):
            raise ProgramError("a variable of the environment is no text")
        for name in document["environment"]:
            if name not in VARIABLES:
                raise ProgramError(f"{name!r} is not among the variables a scenario may set")
            if name.endswith("_PLUGIN") and document["environment"][name] != "none":
                raise ProgramError(f"{name}: a scenario loads no plugin: 'none' is all that it may say")
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
