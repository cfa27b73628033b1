"""The `serving:` of a scenario file. `foretrace check` has the diagnostics; here a mistake is one line.

maps.py reads the part of YAML that these files use, since a measuring machine may have no package for it."""

import json
import pathlib
import re

from maps import Mistake, maps, uncommented

ENGINE = {"kind": "foretrace", "max_batched_tokens": 2048, "max_requests": 64, "chunked_prefill": True, "block": 16,
          "cuda_graphs": True, "memory": "90%", "cache_tokens": None, "max_length": 8192}
LENGTHS = ("prompt", "output", "requests")
TRAFFIC = {"trace": ("file",), "closed": ("concurrency", *LENGTHS), "poisson": ("rate", *LENGTHS), "gamma": ("rate", "shape", *LENGTHS)}
HEAD = {"schema_version", "name", "parameters", "serving", "environment", "rule", "source", "captured_on", "tags"}
SERVING = {"model", "precision", "engine", "traffic"}
MOST_TOKENS, MOST_REQUESTS = 10_000_000, 1_000_000  # as `foretrace simulate` takes
OTHERS = SERVING | {"parallel", "replicas", "prefix_hits", "disaggregated", "router"}  # of servers that are not ours
OTHER_ENGINE = {"release": None, "speculative": None}
OTHER_KINDS = ("vllm", "sglang", "tensorrt-llm")
PRECISIONS = ("bfloat16", "float8", "nvfp4", "int4")
LAYOUT = {"tensor", "data", "expert", "pipeline"}
LARGEST_SEED = 1 << 53


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
    for name, value in [*declared.items(), *values.items()]:
        if isinstance(value, (dict, bool)) or not re.fullmatch(r"[\w.%/ -]+", str(value), re.ASCII):
            raise Mistake(f"parameter {name}: '{str(value)[:80]}' is no number or word")
    declared = {name: str(value) for name, value in declared.items()} | values

    def value(match):
        if match[1] not in declared:
            raise Mistake(f"${match[1]} is no parameter of this file")
        return declared[match[1]]

    return "\n".join(re.sub(r"\$(\w+)", value, uncommented(line)) for line in text.split("\n"))


def traffic_of(found):
    """`traffic` with what each kind of arrivals needs, and no key that it would not look at."""
    traffic = dict(known(found, {"arrivals", "seed"}.union(*TRAFFIC.values()), "traffic"))
    kind = traffic.get("arrivals")
    if kind not in TRAFFIC:
        raise Mistake(f"traffic: arrivals are poisson, gamma, closed or trace, not '{kind}'")
    known(traffic, ("arrivals", *TRAFFIC[kind]) + (("seed",) if kind != "trace" else ()), f"traffic of {kind} arrivals")
    for key in TRAFFIC[kind]:
        if key not in traffic:
            raise Mistake(f"traffic: no '{key}'")
    if kind == "trace":
        return traffic
    traffic["prompt"], traffic["output"] = law(traffic["prompt"]), law(traffic["output"])
    for key in ("requests", "concurrency")[:1 + (kind == "closed")]:
        count(traffic, key, "traffic", MOST_REQUESTS)
    seed = traffic.setdefault("seed", 1)
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
        raise Mistake(f"traffic: 'seed' is a whole number from 0 to {LARGEST_SEED}, not '{seed}'")
    if kind in ("poisson", "gamma"):
        traffic["mean_gap_ns"] = gap_ns(traffic["rate"])
    if kind == "gamma":
        match = re.fullmatch(r"(\d{1,4})(\.[05])?", str(traffic["shape"]))
        traffic["shape_halves"] = round(2 * float(match[0])) if match else 0
        if not 1 <= traffic["shape_halves"] <= 2000:
            raise Mistake(f"traffic: 'shape' is a multiple of 0.5 up to 1000, not '{traffic['shape']}'")
    return traffic


def engine_of(found, any_server):
    """`engine` with its defaults. The sizes are our engine's; a server has its own."""
    engine = ENGINE | known(found, ENGINE | (OTHER_ENGINE if any_server else {}), "engine")
    if engine["kind"] not in (ENGINE["kind"], *OTHER_KINDS):
        raise Mistake(f"engine: '{engine['kind']}' is none of foretrace, {', '.join(OTHER_KINDS)}")
    if engine["kind"] != "foretrace" and not any_server:
        raise Mistake(f"engine: '{engine['kind']}' is no engine of ours: hw/serving/client.py sends requests to a server")
    engine["memory_ppm"] = ppm(engine.pop("memory"))
    if not 1 <= engine["memory_ppm"] <= 1_000_000:
        raise Mistake("engine: 'memory' is more than 0%, and 100% at most")
    for key in ("max_batched_tokens", "max_length"):
        count(engine, key, "engine", MOST_TOKENS)
    for key in ("max_requests", "block"):
        count(engine, key, "engine", 65536)
    if engine["cache_tokens"] is not None:
        count(engine, "cache_tokens", "engine", 1 << 62)
    for key in ("chunked_prefill", "cuda_graphs"):
        if type(engine[key]) is not bool:
            raise Mistake(f"engine: '{key}' is true or false, not '{engine[key]}'")
    return engine


def read(path, values=None, any_server=False):
    """{"name", "model", "architecture", "engine", "traffic"} of a scenario file. `any_server`: keys that our engine does not
    know are the server's."""
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    document = maps(with_values(text, values or {}))
    for key in ("schema_version", "name", "serving"):
        if key not in document:
            raise Mistake(f"no '{key}'")
    known(document, HEAD, "a scenario with serving")
    if document["schema_version"] != 1:
        raise Mistake(f"schema_version: {document['schema_version']!r}, and 1 is read")
    if not re.fullmatch(r"[\w.-]+", str(document["name"]), re.ASCII) or document["name"] in (".", ".."):
        raise Mistake(f"name: {document['name']!r} is no word of letters, digits, '_', '-' and '.'")
    serving = known(document["serving"], OTHERS if any_server else SERVING, "serving")
    for key in ("model", "traffic"):
        if key not in serving:
            raise Mistake(f"serving: no '{key}'")
    engine, traffic = engine_of(serving.get("engine", {}), any_server), traffic_of(serving["traffic"])
    for key in known(serving.get("parallel", {}), LAYOUT, "parallel"):
        count(serving["parallel"], key, "parallel", 1024)
    precision = serving.get("precision", "bfloat16")
    for word in known(precision, ("weights", "cache"), "precision").values() if isinstance(precision, dict) else [precision]:
        if word not in PRECISIONS:
            raise Mistake(f"precision: '{word}' is none of {', '.join(PRECISIONS)}")
    if precision != "bfloat16" and not any_server:
        raise Mistake("precision: the engine computes in bfloat16 only")
    return {"name": str(document["name"]), "model": serving["model"], "architecture": architecture(serving["model"], path.parent),
            "engine": engine, "traffic": traffic, "folder": str(path.parent), "text": text,
            "path": str(path)}


def architecture(model, folder="."):
    """A file in the form of config.json, or the name of one in scenarios/architectures."""
    shipped = pathlib.Path(__file__).parents[3] / "scenarios" / "architectures" / f"{model}.json"
    is_file = str(model).endswith(".json")
    if not is_file and not re.fullmatch(r"[\w.-]+", str(model), re.ASCII):
        raise Mistake(f"model: '{str(model)[:80]}' is no word of letters, digits, '_', '-' and '.'")
    path = pathlib.Path(folder) / model if is_file else shipped
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
