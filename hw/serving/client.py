#!/usr/bin/env python3
"""Sends the requests of a file with `serving:` to an OpenAI-compatible server, and measures what they see.

    python3 hw/serving/client.py FILE --url http://127.0.0.1:8000 -o RUNS/    # RUNS/NAME/measured.timeline.json

vLLM, SGLang and TensorRT-LLM serve such an address. Prompts are random token ids of the file's lengths, and answers have as many
tokens as the file says (`ignore_eos`, `min_tokens`). Beside a prediction `foretrace compare RUNS/NAME` and `report` read the result.
A key comes from OPENAI_API_KEY. Exit code 2: a request had no answer, or not the asked one; all others are written. 4: they cannot be written.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "engine"), str(HERE / "openai")]

import results  # noqa: E402
import scenario  # noqa: E402
import timeline  # noqa: E402
import traffic  # noqa: E402
from load import Load  # noqa: E402
from stream import Refused, Server, plain  # noqa: E402

LATE_MS = 10  # a client that sends so much too late measures itself


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--url", required=True, help="of the server, as http://127.0.0.1:8000")
    parser.add_argument("--model", help="the server's name of it; default: the first that it lists")
    parser.add_argument("-o", "--output", required=True, help="a folder; NAME/measured.timeline.json goes into it")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of a parameter of the file")
    parser.add_argument("--gpus", type=int, default=1, help="that the server has, for the record")
    parser.add_argument("--machine", default="a server", help="its name in the record: '4 x NVIDIA H100'")
    parser.add_argument("--timeout", type=float, default=300, help="seconds without a token until a request is given up")
    parser.add_argument("--keep-end", action="store_true", help="without ignore_eos and min_tokens, for servers that refuse them")
    return parser.parse_args()


def values_of(settings):
    for text in settings:
        if "=" not in text:
            raise scenario.Mistake(f"--set {text}: no NAME=VALUE")
    return dict(text.split("=", 1) for text in settings)


def say(text):
    print(text, file=sys.stderr)


def print_table(served):
    times = timeline.times_of(served)
    print(f"{'ms':<22}{'mean':>10}" + "".join(f"{f'p{p}':>10}" for p in results.PERCENTILES))

    def row(name, values):
        if values:
            cells = [sum(values) / len(values), *(results.percentile(values, p) for p in results.PERCENTILES)]
            print(f"{name:<22}" + "".join(f"{cell / 1e6:>10.2f}" for cell in cells))

    for name, values in times.items():
        row(name, values)
    row("TTFT from sending", [r.token_ns[0] - r.admitted_ns[0] for r in served])
    seconds = (max(r.token_ns[-1] for r in served) - min(r.arrival_ns for r in served)) / 1e9
    print(f"\n{len(served)} requests in {seconds:.2f} s: {len(served) / seconds:.2f} a second, "
          f"{sum(r.output for r in served) / seconds:.0f} output tokens a second")


def causes(load):
    """Lines of what went wrong, the most frequent first."""
    counts = collections.Counter(why for _, why, _ in load.failed)
    lines = [f"{count} of {len(load.arrivals)} requests: {why}" for why, count in counts.most_common()]
    missing = len(load.arrivals) - len(load.served) - len(load.failed)
    return lines + ([f"{missing} of {len(load.arrivals)} requests were not sent: so many had failed one after the other"] if missing else [])


async def measure(given, read, arrivals):
    server = Server(given.url, os.environ.get("OPENAI_API_KEY"), given.timeout)
    models = await server.models()
    model = given.model or (models[0] if models else None)
    if model is None:
        raise Refused(f"{server.url}/models lists no model: --model names one")
    load = Load(server, model, arrivals, read["architecture"].get("vocab_size", 32000), ignores_end=not given.keep_end)
    await load.warm()
    await load.run()
    return server, model, load


def main():
    given = arguments()
    try:
        read = scenario.read(given.file, values_of(given.set), any_server=True)
        arrivals = traffic.requests(read["traffic"], read["folder"])
        server, model, load = asyncio.run(measure(given, read, arrivals))
    except (Refused, ValueError, OSError) as error:
        say(f"error: {given.file}: {error}" if isinstance(error, (ValueError, OSError)) else f"error: {error}")
        return 2
    wrong = causes(load)
    for line in wrong:
        say(f"error: {line}")
    if not load.served:
        return 2
    late = results.percentile(load.late_ns, 99) / 1e6
    if late > LATE_MS:
        say(f"note: one request in a hundred was sent {late:.0f} ms or more too late: the client's computer is the limit")
    for what, count in load.counts.items():
        say(f"note: {count} {what}")
    document = timeline.of(read, arrivals, load.served, producer="hw/serving client.py", machine=given.machine,
                           versions={"server": f"{plain(model)} at {server.base}", "seen_by": "a client, to whom waiting is a part of prefill"},
                           engine=read["engine"]["kind"], gpus=given.gpus, explanation=wrong)
    path = pathlib.Path(given.output) / read["name"] / "measured.timeline.json"
    try:
        timeline.write(path, document)
    except OSError as error:
        say(f"error: {path}: {error.strerror}")
        return 4
    print_table(load.served)
    print(f"wrote {path}")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
