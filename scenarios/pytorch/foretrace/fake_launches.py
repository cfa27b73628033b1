"""Which launches an operation makes on a GPU, from a table that was learned from emulated captures (learn_launches.py). Needs no PyTorch."""

import gzip
import json
import math
import pathlib
import re

TABLE = pathlib.Path(__file__).with_name("launches.json.gz")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")


def _tensors(arguments):
    for a in arguments:
        for t in a if isinstance(a, list) else [a]:
            if isinstance(t, dict):
                yield t


def keys_of(name, arguments):
    """What decides the kernels, the closest first: the types of the operation's first tensors, which are scalars, which are not contiguous."""
    tensors = [t for t, _ in zip(_tensors(arguments), range(3))]
    kinds = [t["d"] + ("h" if "dev" in t else "") + ("" if t["s"] else "0") for t in tensors]
    layouts = ["t" if "st" in t else "" for t in tensors]
    return [f"{name}|{','.join(k + s for k, s in zip(kinds, layouts))}", f"{name}|{','.join(kinds)}", f"{name}|{','.join(t['d'] for t in tensors)}"]


def size_of(arguments):
    """Elements of the largest tensor."""
    return max((math.prod(t["s"]) for t in _tensors(arguments)), default=1)


def product(name, arguments):
    """Keys of a `gemm` call, column-major as BLAS has it: the second operand's columns are its rows."""
    tensors = list(_tensors(arguments))
    a, b = tensors[-2:]
    m, n, k = b["s"][-1], a["s"][-2], a["s"][-1]
    batch = a["s"][0] if len(a["s"]) == 3 else 1

    def transposed(t):
        stride = t.get("st")
        return bool(stride) and stride[-1] != 1
    return {"f": "cublasGemmEx", "m": m, "n": n, "kk": k, "batch": batch, "ta": transposed(b), "tb": transposed(a), "a": a["d"], "b": b["d"], "c": a["d"],
            "d": a["d"], "compute": "f32", "epi": "none", "beta": 1 if name in ("aten::addmm", "aten::baddbmm") else 0, "ld": [m, k, m]}


MOST_TENSORS, MOST_BLOCKS, CHUNK = (110, 64, 48, 36, 30), 320, 65536  # of one launch over a list of tensors, by how many lists: PyTorch's multi_tensor_apply


def list_launches(name, arguments):
    """Blocks of each launch of a kernel over lists of tensors."""
    lists = [a for a in arguments if isinstance(a, list) and a and isinstance(a[0], dict)]
    found = re.search(r"TensorList\w*Metadata<(?:\w+, )?(\d)", name)
    depth = int(found.group(1)) if found else max(len(lists), 1)
    most, blocks, tensors, made = MOST_TENSORS[min(depth, 5) - 1], 0, 0, []
    sizes = [math.prod(t["s"]) for t in lists[0]] if lists else [1]
    sizes = [n for n in sizes if n]
    for i, n in enumerate(sizes):
        tensors += 1
        chunks = -(-n // CHUNK)
        for chunk in range(chunks):
            blocks += 1
            full = (tensors == most and chunk == chunks - 1) or blocks == MOST_BLOCKS
            if full or (i == len(sizes) - 1 and chunk == chunks - 1):
                made.append(blocks)
                blocks, tensors = 0, 0 if chunk == chunks - 1 else 1
    return made


class Launches:
    def __init__(self, path=TABLE):
        with gzip.open(path, "rt") as file:
            read = json.load(file)
        self.names, self.operations, self.host_loops = read["names"], read["operations"], read["host_loops_per_launch"]
        self.unknown = {}  # operations that the table does not have, and how often

    def of(self, name, arguments, is_view):
        """[(kind, keys)] of the calls that the operation makes."""
        if name in PRODUCTS:
            return [("gemm", product(name, arguments))]
        rows = next((self.operations[k] for k in keys_of(name, arguments) if k in self.operations), None)
        if rows is None:
            rows = self._of_other_types(name)
        if rows is None:
            if is_view:
                return []
            self.unknown[name] = self.unknown.get(name, 0) + 1
            return [("launch", self._launch(name, 128, max(1, math.ceil(size_of(arguments) / 512))))]
        calls = []
        if rows and rows[0][0] == "launch" and "multi_tensor_apply" in self.names[rows[0][1]]:
            kernel = self.names[rows[0][1]]
            return [("launch", self._launch(kernel, rows[0][2], blocks)) for blocks in list_launches(kernel, arguments)]
        for kind, n, block, per_block in rows:
            if kind == "launch":
                calls.append((kind, self._launch(self.names[n], block, max(1, math.ceil(size_of(arguments) / max(per_block, 1e-3))))))
            elif kind == "lib":
                calls.append((kind, {"f": "cudnnBackendExecute", "ops": []}))
            elif kind == "memset":
                calls.append((kind, {"n": 4}))
        return calls

    def _of_other_types(self, name):
        """The launches of the operation at other types: as many, with other kernels' times."""
        return next((rows for key, rows in self.operations.items() if key.startswith(name + "|") and rows), None) or (
            [] if any(key.startswith(name + "|") for key in self.operations) else None)

    @staticmethod
    def _launch(name, block, blocks):
        return {"name": name, "g3": [blocks, 1, 1], "b3": [block, 1, 1], "sm": 0}
