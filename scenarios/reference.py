#!/usr/bin/env python3
"""The reference of all keys and operations, from scenario.schema.json (a test holds that to the reader) and
reference_notes.md.

scenarios/reference.py            prints the page
scenarios/reference.py --write    renews scenarios/reference.md
scenarios/reference.py --check    exit 1 when that is not what would be printed, or a key says no default
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE / "reference.md"
NOTES = HERE / "reference_notes.md"  # what is no key: passes, sizes, names; it goes before the keys
# Of the schema's definitions those that are values of a key, not maps with keys of their own.
VALUES = ("number", "size", "time", "share", "word", "setting", "name", "reference", "oversubscription", "parameter", "type", "product_type", "operator")
OBJECTS = ("stream", "event", "signal", "graph", "buffer", "communicator", "split", "fabric", "machine_fault", "process_group", "include", "thread", "task", "batched")
# Optional everywhere, and said once; or one of several forms of a file.
UNSAID = ("id", "after", "only_on", "not_on", "threads", "training_step", "condition")


def type_of(schema):
    """What may stand there, in a few words."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1].replace("_parameter", "")
    for key in ("allOf", "anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(text for text in map(type_of, schema[key]) if text != "word"))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{schema['const'] if isinstance(schema['const'], str) else json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        length = schema.get("maxItems")
        return f"list of {type_of(schema['items'])}" + (f", at most {length}" if length else "")
    return {"object": "map", "boolean": "`true`, `false`"}.get(schema.get("type"), schema.get("type", "any value"))


def meaning_of(schema, definitions):
    if "description" in schema:
        return schema["description"]
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return definitions[name].get("description", "") if name in definitions and name not in VALUES else ""


def keys_table(schema, definitions, without=()):
    """The keys of a map; those it cannot do without in bold."""
    required = schema.get("required", [])
    rows = ["| key | takes | |", "| --- | --- | --- |"]
    for key, value in schema.get("properties", {}).items():
        if key in without:
            continue
        shown = f"**`{key}`**" if key in required else f"`{key}`"
        cells = [shown, type_of(value), meaning_of(value, definitions)]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows if len(rows) > 2 else ["No keys."]


def as_map(schema):
    """Of the forms that something may have, the one with keys."""
    if "properties" in schema:
        return schema
    return next((form for key in ("anyOf", "oneOf") for form in schema.get(key, []) if "properties" in form), {})


def sentence(text):
    if not text:
        return ""
    is_call = text.split()[0].rstrip(":,").startswith(("cuda", "nccl"))
    return (text if is_call else text[:1].upper() + text[1:]) + "."


def value_words(schema):
    """A value's description, and the words that it may be, when they are few."""
    words = [f"`{word}`" for form in schema.get("anyOf", []) for word in form.get("enum", [])]
    return ": ".join(filter(None, [schema.get("description", ""), ", ".join(words)]))


def maps_within(name, schema):
    """Every map with keys of its own in a map, itself first, by the path of its keys."""
    found = [(name, schema)]
    for key, value in schema.get("properties", {}).items():
        forms = value.get("oneOf", [value])
        for form in (form for form in forms if "properties" in form):
            if key == "model" and "config" in form["properties"]:
                found += maps_within(f"{name}: {key} of a config.json", form)
            else:
                found += maps_within(f"{name}: {key}", form)
    return found


def silent_keys(name, schema, definitions):
    """Optional keys that say neither their default nor what they stand in for."""
    words = ("default", "instead of", " or both", "one of ", "with async")
    return [f"{name}: {key} says no default" for key, value in schema.get("properties", {}).items()
            if key not in schema.get("required", []) and key not in UNSAID and "properties" not in value
            and not any(word in meaning_of(value, definitions) for word in words)]


def all_silent_keys(schema):
    definitions = schema["definitions"]
    maps = [("the file", schema)] + maps_within("training_step", schema["properties"]["training_step"])
    maps += [(name, as_map(definitions[name])) for name in OBJECTS if name not in ("task", "batched")]
    for kind in ("operation", "expectation", "task", "batched"):
        maps += [(f"{kind} {name}", value) for name, value in definitions[kind]["properties"].items()]
    return [problem for name, one in maps for problem in silent_keys(name, one, definitions)]


def one_of_each(schema, definitions, level):
    """Operations and expectations: a map with one key, the name."""
    lines = []
    for name, value in sorted(schema["properties"].items()):
        lines += ["", f"{level} {name}", "", sentence(value.get("description", "")), ""]
        lines += keys_table(value, definitions, ("id", "only_on", "not_on"))
    return lines


def page():
    schema = json.loads((HERE / "scenario.schema.json").read_text(encoding="utf-8"))
    definitions = schema["definitions"]
    lines = ["# Every key and every operation", "",
             "Written by [reference.py](reference.py) from [scenario.schema.json](scenario.schema.json); a test says when it is stale.",
             "Keys in bold are needed. What an operation means, on both executors, stands in [program/ops.h](program/ops.h); `foretrace list",
             "ops --keys` prints the same operations.", "",
             "## Values", "", "| | |", "| --- | --- |"]
    for name in VALUES:
        lines.append(f"| {name} | {value_words(definitions[name])} |".replace("||", "\\|\\|"))
    lines += ["", NOTES.read_text(encoding="utf-8").strip()]
    lines += ["", "## The file", ""] + keys_table(schema, definitions)
    for name, one in maps_within("training_step", schema["properties"]["training_step"]):
        lines += ["", f"### {name}", "", sentence(one.get("description", "")), ""] if "description" in one else ["", f"### {name}", ""]
        lines += keys_table(one, definitions)
    for name in OBJECTS:
        if name in definitions and as_map(definitions[name]):
            lines += ["", f"### {name.replace('_', ' ')}", "", sentence(definitions[name].get("description", "")), ""]
            lines += keys_table(as_map(definitions[name]), definitions)
    lines += ["", "## Operations", "", "Each takes `id` too: a label for `expect:` and the reports."]
    lines += one_of_each(definitions["operation"], definitions, "###")
    lines += ["", "## Expectations", "", "Each takes `only_on` and `not_on` too: names of machine models."]
    lines += one_of_each(definitions["expectation"], definitions, "###")
    return "\n".join(lines) + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE} is stale: scenarios/reference.py --write")
        silent = all_silent_keys(json.loads((HERE / "scenario.schema.json").read_text(encoding="utf-8")))
        if silent:
            sys.exit("\n".join(silent))
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
