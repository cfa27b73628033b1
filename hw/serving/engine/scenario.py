"""The `serving:` of a scenario file. `foretrace validate` has the diagnostics; here a mistake is one line.

The part of YAML that these files use is read here, since a measuring machine may have no package for it."""

import json
import pathlib
import re

ENGINE = {"kind": "foretrace", "max_batched_tokens": 2048, "max_requests": 64, "chunked_prefill": True, "block": 16,
          "cuda_graphs": True, "memory": "90%", "cache_tokens": None, "max_length": 8192}
TRAFFIC = {"arrivals", "rate", "shape", "concurrency", "file", "prompt", "output", "requests", "seed"}
SERVING = {"model", "precision", "engine", "traffic"}
MOST_TOKENS, MOST_REQUESTS = 10_000_000, 1_000_000  # as `foretrace simulate` takes
OTHERS = SERVING | {"parallel", "replicas", "prefix_hits", "disaggregated", "router"}  # of servers that are not ours
OTHER_ENGINE = {"release": None, "speculative": None}


class Mistake(ValueError):
    pass


def scalar(text):
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text.strip("\"'")


def flow(text):
    """A map in braces, or a scalar."""
    text = text.strip()
    if not text.startswith("{"):
        return scalar(text)
    if not text.endswith("}"):
        raise Mistake(f"'{text}': a map in braces must end on its line")
    parts, depth, begin, inner = [], 0, 0, text[1:-1]
    for at, character in enumerate(inner + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            parts.append(inner[begin:at])
            begin = at + 1
    return {key.strip(): flow(value) for key, value in (part.split(":", 1) for part in parts if part.strip())}


def maps(text):
    """Maps by indentation, and maps in braces."""
    root = {}
    open_maps = [(-1, root)]
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not line:
            continue
        indent, (key, colon, value) = len(line) - len(line.lstrip()), line.strip().partition(":")
        if not colon:
            raise Mistake(f"line {number}: '{line.strip()}' is no KEY: VALUE")
        while open_maps[-1][0] >= indent:
            open_maps.pop()
        into = open_maps[-1][1]
        if value.strip():
            into[key] = flow(value)
        else:
            into[key] = {}
            open_maps.append((indent, into[key]))
    return root


def ppm(text):
    match = re.fullmatch(r"(\d+)(?:\.(\d{1,4}))?\s*%", str(text))
    if not match:
        raise Mistake(f"'{text}' is no percentage, as 30%")
    return int(match[1]) * 10000 + int((match[2] or "").ljust(4, "0"))


def gap_ns(text):
    """1/rate: rates are N/s, N/min or N/h, with up to three decimal places."""
    match = re.fullmatch(r"(\d+)(?:\.(\d{1,3}))?\s*/\s*(s|min|h)", str(text))
    thousandths = match and int(match[1]) * 1000 + int((match[2] or "").ljust(3, "0"))
    if not thousandths:
        raise Mistake(f"'{text}' is no rate, as 4/s or 30/min")
    return {"s": 1, "min": 60, "h": 3600}[match[3]] * 1000000000000 // thousandths


def known(found, keys, where):
    if not isinstance(found, dict):
        raise Mistake(f"{where}: '{found}' is no map")
    for key in found:
        if key not in keys:
            raise Mistake(f"{where}: unknown key '{key}'")
    return found


def count(found, key, where, most):
    value = found.get(key)
    if type(value) is not int or not 1 <= value <= most:
        raise Mistake(f"{where}: '{key}' is a whole number from 1 to {most}, not '{value}'")
    return value


def law(found):
    known(found, ("mean", "spread"), "a length")
    return {"mean": count(found, "mean", "a length", MOST_TOKENS), "spread_ppm": ppm(found.get("spread", "0%"))}


def with_values(text, values):
    """`$name` as `parameters:` says, or as `values` does in its place."""
    declared = maps(text).get("parameters", {})
    for name in values:
        if name not in declared:
            raise Mistake(f"--set {name}: no parameter of this file; it has {', '.join(declared) or 'none'}")
    declared = {name: str(value) for name, value in declared.items()} | values

    def value(match):
        if match[1] not in declared:
            raise Mistake(f"${match[1]} is no parameter of this file")
        return declared[match[1]]

    return "\n".join(re.sub(r"\$(\w+)", value, re.sub(r"(^|\s)#.*", "", line)) for line in text.splitlines())


def read(path, values=None, any_server=False):
    """{"name", "model", "architecture", "engine", "traffic"} of a scenario file. `any_server`: keys that our engine does not
    know are the server's."""
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    document = maps(with_values(text, values or {}))
    for key in ("name", "serving"):
        if key not in document:
            raise Mistake(f"no '{key}'")
    if not re.fullmatch(r"[\w.-]+", str(document["name"]), re.ASCII) or document["name"] in (".", ".."):
        raise Mistake(f"name: {document['name']!r} is no word of letters, digits, '_', '-' and '.'")
    serving = known(document["serving"], OTHERS if any_server else SERVING, "serving")
    for key in ("model", "traffic"):
        if key not in serving:
            raise Mistake(f"serving: no '{key}'")
    engine = ENGINE | known(serving.get("engine", {}), ENGINE | (OTHER_ENGINE if any_server else {}), "engine")
    if engine["kind"] != "foretrace" and not any_server:
        raise Mistake(f"engine: '{engine['kind']}' is no engine of ours: hw/serving/client.py sends requests to a server")
    engine["memory_ppm"] = ppm(engine.pop("memory"))
    traffic = dict(known(serving["traffic"], TRAFFIC, "traffic"))
    kind = traffic.get("arrivals")
    if kind not in ("poisson", "gamma", "closed", "trace"):
        raise Mistake(f"traffic: arrivals are poisson, gamma, closed or trace, not '{kind}'")
    needed = {"trace": ("file",), "closed": ("concurrency",), "poisson": ("rate",), "gamma": ("rate", "shape")}[kind]
    for key in needed + (() if kind == "trace" else ("prompt", "output", "requests")):
        if key not in traffic:
            raise Mistake(f"traffic: no '{key}'")
    if kind != "trace":
        traffic["prompt"], traffic["output"] = law(traffic["prompt"]), law(traffic["output"])
        traffic.setdefault("seed", 1)
        for key in ("requests", "concurrency"):
            if key == "requests" or kind == "closed":
                count(traffic, key, "traffic", MOST_REQUESTS)
    if kind in ("poisson", "gamma"):
        traffic["mean_gap_ns"] = gap_ns(traffic["rate"])
    if kind == "gamma":
        match = re.fullmatch(r"(\d{1,4})(\.[05])?", str(traffic["shape"]))
        traffic["shape_halves"] = round(2 * float(match[0])) if match else 0
        if not 1 <= traffic["shape_halves"] <= 2000:
            raise Mistake(f"traffic: 'shape' is a multiple of 0.5 up to 1000, not '{traffic['shape']}'")
    if serving.get("precision", "bfloat16") != "bfloat16" and not any_server:
        raise Mistake("precision: the engine computes in bfloat16 only")
    return {"name": str(document["name"]), "model": serving["model"], "architecture": architecture(serving["model"], path.parent),
            "engine": engine, "traffic": traffic, "folder": str(path.parent), "text": text,
            "path": str(path)}


def architecture(model, folder="."):
    """A file in the form of config.json, or the name of one in scenarios/architectures."""
    shipped = pathlib.Path(__file__).parents[3] / "scenarios" / "architectures" / f"{model}.json"
    path = pathlib.Path(folder) / model if str(model).endswith(".json") else shipped
    if not path.is_file():
        raise Mistake(f"model: '{model}' is no file beside the scenario, and none of scenarios/architectures")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Mistake(f"{path}: not JSON: {error}"[:200]) from None
    vocabulary = found.get("vocab_size", 32000) if isinstance(found, dict) else None
    if type(vocabulary) is not int or not 16 <= vocabulary < 1 << 31:
        raise Mistake(f"{path}: no config.json with a 'vocab_size'")
    return found
