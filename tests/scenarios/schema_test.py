"""scenario.schema.json against every shipped scenario and against the reader's own list of keys.

usage: schema_test.py SCHEMA OPERATIONS_JSON DIRECTORY...
"""

import json
import pathlib
import re
import sys

import jsonschema
import yaml


def key_names(keys):
    """'[stream] (buffer | send_buffer recv_buffer) type' -> the set of words."""
    return set(re.findall(r"[a-z_]+", keys))


def check_operations(schema, operations):
    """The schema knows exactly the operations and keys that the reader knows."""
    described = schema["definitions"]["operation"]["properties"]
    problems = []
    for name in sorted(set(described) ^ set(operations)):
        problems.append(f"operation {name}: only in the {'schema' if name in described else 'reader'}")
    for name in sorted(set(described) & set(operations)):
        in_schema = set(described[name]["properties"]) - {"id"}
        in_reader = key_names(operations[name])
        if in_schema != in_reader:
            problems.append(f"{name}: schema has {sorted(in_schema)}, reader {sorted(in_reader)}")
    return problems


def check_words(schema, words):
    """Types and operators are the reader's: the reference is written from the schema."""
    described = {name: schema["definitions"][name]["anyOf"][0]["enum"] for name in words}
    return [f"{name}: schema has {described[name]}, reader {words[name]}" for name in words if described[name] != words[name]]


def check_files(validator, directories):
    files = sorted(file for directory in directories for file in pathlib.Path(directory).rglob("*.yaml"))
    problems = [] if files else ["no scenario found"]
    for file in files:
        for error in validator.iter_errors(yaml.safe_load(file.read_text(encoding="utf-8"))):
            where = "/".join(str(step) for step in error.absolute_path)
            problems.append(f"{file}: {where}: {error.message}")
    print(f"{len(files)} files")
    return problems


def check_refusals(validator):
    """A schema that accepts anything would pass all else."""
    base = {"schema_version": 1, "name": "a", "threads": {"main": []}}
    op = lambda name, keys: {**base, "threads": {"main": [{name: keys}]}}
    refused = {
        "unknown top-level key": {**base, "thread": {}},
        "missing threads": {"schema_version": 1, "name": "a"},
        "unknown operation": op("spinn", {}),
        "unknown key": op("spin", {"duration": "1us", "strem": "s"}),
        "time without unit": op("spin", {"duration": 5}),
        "time without unit, as text": op("spin", {"duration": "5"}),
        "two operations in one": {**base, "threads": {"main": [{"spin": {"duration": "1us"}, "malloc": {}}]}},
        "product of integers": op("gemm", {"m": 1, "n": 1, "k": 1, "a": "x", "b": "x", "c": "x", "type": "int32"}),
        "unknown memory": {**base, "buffers": {"x": {"memory": "gpu", "size": "1KiB"}}},
        "expectation without its key": {**base, "expect": [{"returns_before": {"call": "a"}}]},
        "bound without its time": {**base, "expect": [{"lasts": {"span": "a"}}]},
        "size without unit": {**base, "buffers": {"x": {"memory": "device", "size": 4096}}},
    }
    assert validator.is_valid(base)
    return [f"accepted: {what}" for what, document in refused.items() if validator.is_valid(document)]


def main():
    schema_file, operations_file, *directories = sys.argv[1:]
    schema = json.loads(pathlib.Path(schema_file).read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    known = json.loads(pathlib.Path(operations_file).read_text(encoding="utf-8"))
    problems = (
        check_operations(schema, known["operations"]) + check_words(schema, known["words"]) + check_files(validator, directories) + check_refusals(validator)
    )
    print("\n".join(problems))
    return 1 if problems else 0


sys.exit(main())
