"""The `serving:` of a scenario file. `foretrace validate` has the diagnostics; here a mistake is one line.

The part of YAML that these files use is read here, since a measuring machine may have no package for it."""

import json
import pathlib
import re

ENGINE = {"kind": "foretrace", "max_batched_tokens": 2048, "max_requests": 64, "chunked_prefill": True, "block": 16,
          "cuda_graphs": True, "memory": "90%", "cache_tokens": None, "max_length": 8192}
TRAFFIC = {"arrivals", "rate", "shape", "concurrency", "file", "prompt", "output", "requests", "seed"}
SERVING = {"model", "precision", "engine", "traffic"}


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
    for key in found:
        if key not in keys:
            raise Mistake(f"{where}: unknown key '{key}'")
    return found


def law(found):
    known(found, ("mean", "spread"), "a length")
    return {"mean": int(found["mean"]), "spread_ppm": ppm(found.get("spread", "0%"))}


def read(path):
    """{"name", "model", "architecture", "engine", "traffic"} of a scenario file."""
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    document = maps(text)
    serving = known(document["serving"], SERVING, "serving")
    engine = ENGINE | known(serving.get("engine", {}), ENGINE, "engine")
    engine["memory_ppm"] = ppm(engine.pop("memory"))
    traffic = dict(known(serving["traffic"], TRAFFIC, "traffic"))
    kind = traffic["arrivals"]
    if kind != "trace":
        traffic["prompt"], traffic["output"] = law(traffic["prompt"]), law(traffic["output"])
        traffic.setdefault("seed", 1)
    if kind in ("poisson", "gamma"):
        traffic["mean_gap_ns"] = gap_ns(traffic["rate"])
    if kind == "gamma":
        traffic["shape_halves"] = round(2 * float(traffic["shape"]))
    if serving.get("precision", "bfloat16") != "bfloat16":
        raise Mistake("precision: the engine computes in bfloat16 only")
    return {"name": document["name"], "model": serving["model"], "architecture": architecture(serving["model"], path.parent),
            "engine": engine, "traffic": traffic, "folder": str(path.parent), "text": text}


def architecture(model, folder="."):
    """A file in the form of config.json, or the name of one in scenarios/architectures."""
    shipped = pathlib.Path(__file__).parents[3] / "scenarios" / "architectures" / f"{model}.json"
    path = pathlib.Path(folder) / model if str(model).endswith(".json") else shipped
    return json.loads(path.read_text(encoding="utf-8"))
