"""What a launch moves and computes, by its operator's arguments as a profiler shows them.

scenarios/captured/work.cc says the same of a record without a GPU; both must agree (tests/scenarios/captured).
"""

import json
import math

TYPES = {"c10::BFloat16": "bf16", "float": "f32", "double": "f64", "c10::Half": "f16", "long int": "i64", "long": "i64", "int": "i32",
         "bool": "bool", "unsigned char": "u8", "signed char": "i8", "short": "i16"}
BYTES = {"bf16": 2, "f16": 2, "f64": 8, "i64": 8, "bool": 1, "u8": 1, "i8": 1, "i16": 2}
GATHERS = ("aten::embedding", "aten::index_select", "aten::index", "aten::gather")
REDUCES = ("aten::sum", "aten::mean", "aten::amax", "aten::argmax", "aten::max", "aten::var", "aten::linalg_vector_norm", "aten::any", "aten::all")
ATTENTION_TILE = 64  # queries and keys of a tile: the smallest of the kernels' (fmha_cutlassF_f32_aligned_64x64)
INDEXED_BY_THREAD = 4  # the second number of index_elementwise_kernel<128, 4>, whose indices no profiler shows
SILENT = ("(anonymous namespace)::", "at::native::", "c10::", "void ")


def kernel_word(name):
    """As scenarios/captured/kernel_name.h."""
    plain = ""
    while name:
        silent = next((one for one in SILENT if name.startswith(one)), None)
        if silent:
            name = name[len(silent):]
            continue
        plain += "" if name[0] == " " else name[0]
        name = name[1:]
    depth, end = 0, len(plain)
    for i, letter in enumerate(plain):
        depth += letter == "<"
        depth -= letter == ">" and (i == 0 or plain[i - 1] != "-")
        if letter == "(" and depth == 0 and i > 0:
            end = i
            break
    whole = plain[:end]
    family = "".join(c if c.isascii() and c.isalnum() else "_" for c in whole.split("<")[0].split("::")[-1])
    if not family or family[0].isdigit():
        family = "k_" + family
    value = 0xCBF29CE484222325
    for byte in whole.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{family}.{value:016x}"


class Signature:
    """Of [name, shapes, types, strides or null, scalars or null] (operator_trace.py). `width`: bytes of an element of lists, whose types a
    profiler does not show."""

    def __init__(self, row, width=4):
        self.name, shapes, types, strides, self.plain = row
        self.plain = self.plain or []
        self.tensors = []  # (type, shape, strides or [])
        for i, (shape, kind) in enumerate(zip(shapes, types)):
            stride = strides[i] if strides and i < len(strides) else []
            if kind in TYPES:
                self.tensors.append((TYPES[kind], shape, stride))
            elif kind == "TensorList":
                many = shape if shape and isinstance(shape[0], list) else [shape]
                for j, one in enumerate(many):
                    at = stride[j] if j < len(stride) and isinstance(stride[j], list) else []
                    self.tensors.append(("bf16" if width == 2 else "f32", one, at))

    def numbers(self, argument):
        try:
            value = json.loads(self.plain[argument].replace("True", "true").replace("False", "false"))
        except (IndexError, ValueError):
            return []
        return value if isinstance(value, list) else [value]

    def is_positive(self, argument):
        return any(isinstance(value, (int, float)) and value > 0 for value in self.numbers(argument))

    def is_true(self, argument):
        return argument < len(self.plain) and self.plain[argument] in ("True", "true", "1")


def size_of(kind):
    return BYTES.get(kind, 4)


def different(shape, strides):
    return math.prod(n for i, n in enumerate(shape) if not (i < len(strides) and strides[i] == 0))


def joined(shape, strides):
    run = 1
    if len(strides) != len(shape):
        return math.prod(shape)
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n == 1:
            continue
        if stride != run:
            return run
        run *= n
    return run


def broadcasts(tensors):
    longest = max(len(shape) for _, shape, _ in tensors)
    whole = [1] * longest
    for _, shape, _ in tensors:
        whole = [max(a, b) for a, b in zip(whole, [1] * (longest - len(shape)) + shape)]
    return all(n in (1, whole[longest - len(shape) + i]) for _, shape, _ in tensors for i, n in enumerate(shape))


def moved_bytes(signature, threads=0):
    name, tensors = signature.name, signature.tensors
    if not tensors:
        return 0
    read = sum(different(shape, strides) * size_of(kind) for kind, shape, strides in tensors)
    if name == "aten::copy_":
        return read
    if "_attention_" in name:
        first, count = (1, 3) if "backward" in name else (0, 1)
        return read + sum(math.prod(shape) * size_of(kind) for kind, shape, _ in tensors[first:first + count])
    if name == "aten::index" and len(tensors) == 1:
        return 2 * threads * INDEXED_BY_THREAD * size_of(tensors[0][0])
    if name == "aten::_index_put_impl_":
        kind, shape, strides = tensors[-1]
        return 2 * different(shape, strides) * size_of(kind)
    if name in GATHERS:
        (kind, table, _), (_, index, _) = tensors[0], tensors[-1]
        if name == "aten::gather":
            return 2 * math.prod(index) * size_of(kind)
        row = table[-1] if len(table) > 1 else 1
        return 2 * math.prod(index) * row * size_of(kind) + math.prod(index) * 8
    if name.startswith("aten::_foreach") or "fused" in name or name in REDUCES:
        return read
    if name == "aten::cat":
        return 2 * read
    kind, shape, strides = tensors[0]
    if name.endswith("_"):
        return read + different(shape, strides) * size_of(kind)
    if not broadcasts(tensors):
        return read + different(shape, strides) * size_of(kind)
    result = []
    for _, other, _ in tensors:
        longest = max(len(result), len(other))
        result = [max(a, b) for a, b in zip([1] * (longest - len(result)) + result, [1] * (longest - len(other)) + other)]
    return read + math.prod(result) * size_of(kind)


def short_name(name):
    return name.split("::")[-1].lstrip("_")


def attention(signature):
    """(flops, inner, joined, channels, word) or None."""
    tensors, backward = signature.tensors, "backward" in signature.name
    at = 1 if backward else 0
    if len(tensors) < at + 3 or len(tensors[at][1]) != 4 or len(tensors[at + 1][1]) != 4:
        return None
    kind, q, _ = tensors[at]
    k = tensors[at + 1][1]
    tokens = 2 if "cudnn" in signature.name else 1
    heads = 3 - tokens
    rows, columns = (-(-one[tokens] // ATTENTION_TILE) for one in (q, k))
    mask = signature.numbers(14 if backward else 9)  # of _efficient_attention_*: custom_mask_type
    half = "efficient" in signature.name and mask and mask[0] and rows == columns
    worked = rows * (rows + 1) // 2 if half else rows * columns
    flops = (10 if backward else 4) * q[0] * q[heads] * worked * ATTENTION_TILE ** 2 * q[3]
    # _cudnn_attention_*: is_causal, dropout_p, and a bias behind what else has four dimensions (the sums of exponentials have one column)
    causal = "_causal" if signature.is_true(14 if backward else 10) else ""
    masked = "_masked" if any(len(shape) == 4 and shape[3] == k[tokens] for _, shape, _ in tensors[at + (5 if backward else 3):]) else ""
    drops = "_dropout" if "cudnn" in signature.name and signature.is_positive(13 if backward else 9) else ""
    return flops, q[3], q[tokens], q[0] * q[heads], f"{short_name(signature.name)}.{kind}_{q[3]}{causal}{masked}{drops}"


def convolution(signature):
    tensors, backward = signature.tensors, "backward" in signature.name
    at = 1 if backward else 0
    if len(tensors) < at + 2 or len(tensors[at][1]) < 3 or len(tensors[at + 1][1]) != len(tensors[at][1]):
        return None
    kind, x, strides = tensors[at]
    w = tensors[at + 1][1]
    stride, padding, dilation = (signature.numbers(i) for i in ((4, 5, 6) if backward else (3, 2, 4)))
    places, taps = x[0], 1
    for i in range(2, len(x)):
        def of(sizes, otherwise, i=i):
            return sizes[min(i - 2, len(sizes) - 1)] if sizes else otherwise
        places *= max(1, (x[i] + 2 * of(padding, 0) - of(dilation, 1) * (w[i] - 1) - 1) // max(1, of(stride, 1)) + 1)
        taps *= w[i]
    groups = max(1, x[1] // max(1, w[1]))
    form = "nhwc" if len(strides) > 1 and strides[1] == 1 else "nchw"
    sort = "dense" if groups == 1 else "depthwise" if w[1] == 1 else "groups"
    word = f"{short_name(signature.name)}.{kind}_{form}_t{taps}_s{stride[0] if stride else 1}_{sort}"
    return (4 if backward else 2) * places * w[0] * w[1] * taps, w[1], x[0] * math.prod(x[2:]), w[0], word


def work_of(signature, threads=0):
    """(bytes, flops, inner, joined, channels); `threads` of the launch: what they take where an operation's indices are not shown."""
    size = moved_bytes(signature, threads)
    if "_attention_" in signature.name:
        found = attention(signature)
        if found and found[0] > 0:
            return (size, *found[:4])
    if not signature.tensors:
        return size, 0, 0, 0, 0
    _, largest, _ = max(signature.tensors, key=lambda one: math.prod(one[1]))
    runs = [joined(shape, strides) for _, shape, strides in signature.tensors if math.prod(shape) > 1]
    return size, 0, largest[-1] if largest else 1, min(runs, default=1), largest[1] if len(largest) > 1 else 1


def closed_work_of(signature):
    """(word, bytes, flops, inner, joined, channels) of all that a closed library does in this operator."""
    found = attention(signature) if "attention" in signature.name else convolution(signature) if "convolution" in signature.name else None
    size = moved_bytes(signature)
    if found:
        return (found[4], size, *found[:4])
    _, _, inner, run, channels = work_of(signature)
    kind = signature.tensors[0][0] if signature.tensors else "none"
    return f"{short_name(signature.name)}.{kind}", size, 0, inner, run, channels
