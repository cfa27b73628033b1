"""Calls over the list of a model's parameters (clipping, optimizers): what they are for any list."""

import math
import re

MOST_TENSORS = {"TensorListMetadata": (110, 64, 48, 36, 30), "TensorListScalarListMetadata": (96, 64, 48, 36, 30),
                "FusedOptimizerTensorListMetadata": (110, 64, 48, 36, 30)}  # of a launch, by how many lists: PyTorch's MultiTensorApply.cuh
CHUNK, MOST_BLOCKS = 65536, 320
JOINED = 128  # tensors of a launch of CatArrayBatchedCopy


def rule(call):
    """How many tensors and blocks a launch over a list has; None: it is one launch."""
    if call["k"] != "launch" or "q" not in call:
        return None
    if "multi_tensor_apply_kernel" in call["n"]:
        kind, depth = re.search(r"(\w*TensorList\w*Metadata)<(?:\w+, )?(\d)", call["n"]).groups()
        return {"tensors": MOST_TENSORS[kind][int(depth) - 1], "blocks": MOST_BLOCKS, "chunk": CHUNK}
    return {"tensors": JOINED} if "CatArrayBatchedCopy" in call["n"] else None


def launches(rule, elements):
    """Of each launch: its blocks (of joined tensors: how many it joins)."""
    if "chunk" not in rule:
        return [min(rule["tensors"], len(elements) - i) for i in range(0, len(elements), rule["tensors"])]
    made, tensors, blocks = [], 0, 0
    for n in elements:
        tensors += 1
        chunks = math.ceil(n / rule["chunk"])
        for chunk in range(chunks):
            blocks += 1
            last = chunk == chunks - 1
            if (tensors == rule["tensors"] and last) or blocks == rule["blocks"]:
                made.append(blocks)
                blocks, tensors = 0, 0 if last else 1
    return made + [blocks] if blocks else made


def elements_of(call):
    return [math.prod(t["s"]) for t in next(a for a in call["q"]["in"] if isinstance(a, list) and a and isinstance(a[0], dict))]


def together(calls):
    """Launches over one list as one call, with their rule."""
    made = []
    for call in calls:
        found = rule(call)
        if found and made and call.get("same") and made[-1].get("list") and made[-1]["n"].split("<")[0][:60] == call["n"].split("<")[0][:60]:
            made[-1]["all"].append(call)
            continue
        made.append({**call, "list": found, "all": [call]} if found else dict(call))
    for call in made:
        if not call.get("list"):
            continue
        all_of, at = call.pop("all"), 0 if "chunk" in call["list"] else 1
        expected = launches(call["list"], elements_of(call))
        if [one["g3"][at] for one in all_of] != expected:
            raise SystemExit(f"lists.py: {call['n'][:120]}: launches of {[one['g3'] for one in all_of]}, by rule {expected}")
        call["more_dt"] = sum(one["dt"] for one in all_of[1:]) / max(1, len(all_of) - 1)
        call["g3"] = [1 if i == at else n for i, n in enumerate(call["g3"])]
        if len({one["n"] for one in all_of}) > 1 or len({str(one["b3"]) for one in all_of}) > 1:
            call["names"] = [one["n"] for one in all_of]
    return made


def of_each(argument, shapes):
    """Lists as long as that of the parameters: what stands for each of them."""
    if isinstance(argument, list) and len(argument) == len(shapes) and not isinstance(argument[0], dict):
        return argument[:1]  # numbers: the first one
    if not isinstance(argument, list) or len(argument) != len(shapes) or not argument:
        return argument
    if [t["s"] for t in argument] == shapes:
        return {"each": {"d": argument[0]["d"]}}
    if all(t == argument[0] for t in argument):
        return {"each": argument[0]}
    raise SystemExit(f"lists.py: a list of {argument[:3]}...")


def generic(calls, shapes):
    made = together(calls)
    for call in made:
        if "q" in call:
            call["q"] = {"n": call["q"]["n"], "in": [of_each(a, shapes) for a in call["q"]["in"]]}
    return made
