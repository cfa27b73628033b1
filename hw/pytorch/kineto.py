"""What one profiled step did on the GPU, from a Kineto trace (JSON). Times in microseconds. Needs no PyTorch."""

import collections
import re

KINDS = (  # the first pattern that a kernel's name has
    ("nccl", r"nccl"),
    ("attention", r"flash|fmha|attention|sdpa"),
    ("gemm", r"gemm|nvjet|cutlass|xmma|gemv|cublas|split_?k_?reduce|wgmma"),
    ("optimizer", r"multi_tensor_apply|fused_?adam"),
    ("loss", r"softmax|nll_loss|cross_entropy"),
    ("embedding", r"embedding|radix|\bcub\b|cub::|thrust|indexing_backward|index"),
    ("elementwise", r"elementwise|norm|reduce_kernel|triton_|catarray|copy|gelu|silu|vectorized|unrolled|fill|scan"),
)
NCCL_KINDS = (("all_reduce", "allreduce"), ("all_gather", "allgather"), ("reduce_scatter", "reducescatter"),
              ("send_recv", "sendrecv"), ("broadcast", "broadcast"), ("reduce", "reduce"))
DTYPE_BYTES = {"float": 4, "float32": 4, "bfloat16": 2, "half": 2, "float16": 2, "double": 8, "long": 8,
               "int": 4, "int64": 8, "int32": 4, "byte": 1, "char": 1, "bool": 1, "uint8": 1, "int8": 1}


def kind_of(name):
    """gemm, attention, elementwise, loss, optimizer, embedding, nccl_*, other."""
    text = name.lower()
    for kind, pattern in KINDS:
        if re.search(pattern, text):
            if kind != "nccl":
                return kind
            plain = text.replace("_", "")
            return "nccl_" + next((found for found, word in NCCL_KINDS if word in plain), "other")
    return "other"


def shorten(name, most=110):
    """Without return type and namespaces that say nothing."""
    for noise in ("void ", "at::native::", "(anonymous namespace)::", "c10::", "at::"):
        name = name.replace(noise, "")
    return name if len(name) <= most else name[: most - 3] + "..."


def union(spans):
    """Sorted disjoint [begin, end] of spans that may overlap."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(merged):
    return sum(end - begin for begin, end in merged)


def without(spans, others):
    """The part of disjoint `spans` during which none of disjoint `others` runs."""
    left, at = [], 0
    for begin, end in spans:
        while at < len(others) and others[at][1] <= begin:
            at += 1
        here = at
        while here < len(others) and others[here][0] < end:
            if others[here][0] > begin:
                left.append([begin, others[here][0]])
            begin = max(begin, others[here][1])
            here += 1
        if begin < end:
            left.append([begin, end])
    return left


def message_bytes(arguments):
    """The larger of what goes in and comes out, or None if the trace does not say."""
    elements = [arguments.get(f"{way} msg nelems") for way in ("In", "Out")]
    size = DTYPE_BYTES.get(str(arguments.get("dtype", "")).lower())
    known = [one for one in elements if isinstance(one, int)]
    return max(known) * size if known and size else None


def gpu_events(events):
    found = []
    for event in events:
        category = event.get("cat", "")
        if event.get("ph") == "X" and category in ("kernel", "gpu_memcpy", "gpu_memset"):
            kind = category[4:] if category != "kernel" else kind_of(event["name"])
            found.append((kind, float(event["ts"]), float(event["ts"]) + float(event["dur"]), event))
    return found


def summarise(trace, top=60):
    """Sums over the whole trace, which holds one step of one rank. Exposed communication: some NCCL kernel runs
    and no compute kernel does; copies and memsets are not compute."""
    events = trace["traceEvents"]
    gpu = gpu_events(events)
    if not gpu:
        return {"kernels": 0}
    kinds, names, sizes = collections.Counter(), {}, collections.defaultdict(lambda: [0, 0])
    counts = collections.Counter()
    for kind, begin, end, event in gpu:
        kinds[kind] += end - begin
        counts[kind] += 1
        line = names.setdefault(shorten(event["name"]), [kind, 0, 0.0])
        line[1] += 1
        line[2] += end - begin
        if kind.startswith("nccl"):
            size = message_bytes(event.get("args", {}))
            sizes[kind][0 if size is not None else 1] += size if size is not None else 1
    spans = lambda chosen: union((begin, end) for kind, begin, end, _ in gpu if chosen(kind))
    busy = spans(lambda kind: True)
    nccl = spans(lambda kind: kind.startswith("nccl"))
    compute = spans(lambda kind: not kind.startswith("nccl") and kind not in ("memcpy", "memset"))
    gaps = [after[0] - before[1] for before, after in zip(busy, busy[1:])]
    launches = [event for event in events if event.get("cat") == "cuda_runtime" or event.get("cat") == "cuda_driver"]
    steps = [event for event in events if str(event.get("name", "")).startswith("ProfilerStep")
             and event.get("cat") == "user_annotation"]
    rounded = lambda value: round(value, 2)
    ranking = sorted(names.items(), key=lambda item: -item[1][2])
    return {
        "kernels": sum(count for kind, count in counts.items() if kind not in ("memcpy", "memset")),
        "launches": sum("launch" in str(event.get("name", "")).lower() for event in launches),
        "runtime_calls": len(launches),
        "window_us": rounded(busy[-1][1] - busy[0][0]),
        "host_step_us": rounded(sum(float(event.get("dur", 0)) for event in steps)) if steps else None,
        "gpu_busy_us": rounded(length(busy)),
        "compute_busy_us": rounded(length(compute)),
        "nccl_busy_us": rounded(length(nccl)),
        "exposed_communication_us": rounded(length(without(nccl, compute))),
        "idle_us": rounded(sum(gaps)),
        "idle_gaps": len(gaps),
        "largest_gap_us": rounded(max(gaps, default=0.0)),
        "by_kind": {kind: {"count": counts[kind], "us": rounded(total)} for kind, total in kinds.most_common()},
        "nccl_bytes": {kind: {"bytes": known, "kernels_without_size": unknown}
                       for kind, (known, unknown) in sizes.items()},
        "by_kernel": [{"name": name, "kind": kind, "count": count, "us": rounded(total),
                       "mean_us": round(total / count, 3)} for name, (kind, count, total) in ranking[:top]],
        "other_kernels_us": rounded(sum(total for _, (_, _, total) in ranking[top:])),
    }
