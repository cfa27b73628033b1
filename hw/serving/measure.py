#!/usr/bin/env python3
"""Scenarios with `serving:`, run by the engine beside this file on a GPU (on the CPU where there is none).

    python3 hw/serving/measure.py FILE... -o RUNS/ [--budget SECONDS]      # RUNS/NAME/measured.timeline.json, .serving.json.gz, host.yaml
    python3 hw/serving/measure.py --calibrate MODEL... -o RUNS/            # RUNS/calibration/MODEL.json.gz

Files of one model follow each other, so that its weights and graphs are made once. What the budget leaves no time for is said.
"""

import argparse
import dataclasses
import gc
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "engine"))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2] / "scenarios" / "pytorch"))

import results  # noqa: E402
import scenario as scenarios  # noqa: E402
import timeline  # noqa: E402
import traffic  # noqa: E402
from foretrace import reference_loop  # noqa: E402

CALIBRATED = {"max_batched_tokens": 8192, "max_requests": 256, "max_length": 16384, "graph_length": 8192, "cuda_graphs": True,
              "memory_ppm": 900000, "block": 16}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--calibrate", nargs="+", default=[], metavar="MODEL")
    parser.add_argument("--budget", type=float, default=480, help="seconds")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a file")
    return parser.parse_args()


class Held:
    """The one model on the device."""

    def __init__(self):
        self.key = self.runner = None

    def of(self, torch, config, engine):
        import device

        key = (str(config), engine["max_length"], engine["cuda_graphs"], engine["max_requests"], engine["memory_ppm"])
        if key != self.key:
            self.runner = None
            gc.collect()
            self.runner = device.runner(config, engine, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
            self.key = key
            print(f"  a model in {self.runner.loaded_s:.1f} s, arena {self.runner.arena} tokens", file=sys.stderr)
        return self.runner


def calibrate(torch, held, models, output, deadline):
    import composition

    for index, model in enumerate(models):
        share = time.monotonic() + (deadline - time.monotonic()) / (len(models) - index)
        runner = held.of(torch, scenarios.architecture(model), CALIBRATED)
        rows = composition.measure(runner, CALIBRATED["max_length"], share, lambda row: None)
        failed = [row["failed"] for row in rows if "failed" in row]
        print(f"{model}: {sum('gpu_ns' in r for r in rows)} compositions, {sum('skipped' in r for r in rows)} skipped, "
              f"{len(failed)} failed {failed[:1]}", file=sys.stderr)
        document = {"model": model, "environment": environment(), "arena_tokens": runner.arena, "loaded_s": runner.loaded_s,
                    "graph_length": CALIBRATED["graph_length"], "rows": rows}
        results.write(pathlib.Path(output) / "calibration" / f"{model}.json.gz", document)


def environment():
    import device

    return device.environment()


def serve(torch, held, path, output, limit):
    import device
    from engine import COLUMNS, Engine

    read = scenarios.read(path)
    runner = held.of(torch, read["architecture"], read["engine"])
    device.warm(runner, read["engine"])
    engine = Engine(read, runner, runner.arena)
    rounds = [reference_loop.one_round() for _ in range(3)]
    gc.collect()
    gc.disable()
    requests, iterations, complete = engine.serve(limit)
    gc.enable()
    host = reference_loop.host_speed(rounds + [reference_loop.one_round() for _ in range(3)])
    rows = [results.row_of(r) for r in requests if r.generated == r.output]
    document = {"name": read["name"], "scenario": read["text"], "environment": environment(), "host": host, "complete": complete,
                "arena_tokens": runner.arena, "blocks": engine.blocks, "no_extent": engine.no_extent,
                "preemptions": engine.scheduler.preemptions, "request_columns": results.REQUEST_COLUMNS, "requests": rows,
                "iteration_columns": COLUMNS, "iterations": iterations}
    if rows:
        document["summary"] = told = results.summary(rows)
        print(f"{read['name']}: {len(rows)} requests in {told['seconds']} s, TTFT p50 {told['ttft_ms']['p50']} ms, TPOT p50 "
              f"{told.get('tpot_ms', {}).get('p50')} ms, {told['output_tokens_per_s']} tokens/s, "
              f"{engine.scheduler.preemptions} preemptions{'' if complete else ', NOT COMPLETE'}", file=sys.stderr)
    folder = pathlib.Path(output) / read["name"]
    results.write(folder / "measured.serving.json.gz", document)
    with results.beside(folder / "host.yaml") as aside:
        aside.write_text(reference_loop.host_text(host), encoding="utf-8")
    timeline.write(folder / "measured.timeline.json",
                   timeline_of(read, engine, runner, requests, COLUMNS, iterations, complete))


def timeline_of(read, engine, runner, requests, columns, iterations, complete):
    """What compare and report read beside a prediction."""
    where = environment()
    names = [field.name for field in dataclasses.fields(timeline.Iteration)]
    rows = [timeline.Iteration(**{name: row[columns.index(name)] for name in names}) for row in iterations]
    done = [timeline.Served(r.id, r.arrival_ns, r.prompt, r.output, r.token_ns, r.admitted_ns, r.preempted_ns)
            for r in requests if r.generated == r.output]
    missing = "" if complete else f"{len(requests) - len(done)} requests were not done within the limit of time"
    return timeline.of(read, traffic.requests(read["traffic"], read["folder"]), done, rows, producer="hw/serving measure.py",
                       machine=f"1 x {where['gpu']}", versions={k: str(where[k]) for k in ("torch", "cuda") if k in where},
                       engine=read["engine"]["kind"], block_bytes=read["engine"]["block"] * runner.model.shape.cache_bytes,
                       blocks=engine.blocks, preemptions=engine.scheduler.preemptions,
                       explanation=[missing] if missing else [])


def main():
    given = arguments()
    deadline = time.monotonic() + given.budget
    read = []
    for file in given.files:
        try:
            read.append((str(scenarios.read(file)["model"]), file))
        except (ValueError, OSError) as error:
            print(f"error: {file}: {error}", file=sys.stderr)
            return 2
    read.sort()
    import torch

    torch.set_grad_enabled(False)
    held, failed = Held(), 0
    if given.calibrate:
        calibrate(torch, held, given.calibrate, given.output, deadline - 60 * bool(read))
    for _, file in read:
        if time.monotonic() > deadline - 20:
            print(f"{file}: no time left", file=sys.stderr)
            failed += 1
            continue
        try:
            serve(torch, held, file, given.output, min(given.limit, deadline - time.monotonic()))
        except (ValueError, RuntimeError, OSError) as error:
            print(f"{file}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
