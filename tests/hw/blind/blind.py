#!/usr/bin/env python3
"""Blind rounds: random programs that are predicted, committed, and only then measured.

  blind.py generate reports/blind/round-1
  blind.py predict  reports/blind/round-1 --machine h200-nvswitch-8
  blind.py measure  reports/blind/round-1 OUT          (measure.sh)
  blind.py evaluate reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py known-host reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py spreads  reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py prices   reports/blind/round-1 --machine h200-nvswitch-8 --class allocation host.malloc
"""

import argparse
import json
import pathlib
import sys

import evaluate
import generate
from families import ON_SEVERAL, TABLE
import known_host
import measure
import predict
import prices
import spreads


def run_generate(args):
    text = args.seed or generate.seed_text(args.round.name)
    seed = generate.seed_of(text)
    rows = generate.generate(args.round, seed, TABLE if args.gpus == 2 else ON_SEVERAL, args.gpus)
    about = {"round": args.round.name, "seed_text": text, "seed": seed,
             "generator_commit": generate.commit(pathlib.Path(__file__).parent),
             "programs": len(rows)}
    (args.round / "round.json").write_text(json.dumps(about, indent=1) + "\n")
    print(json.dumps(about))
    return 0


def run_predict(args):
    failed = predict.predict(args.round, args.foretrace, args.machine, args.gpus)
    for program, why in failed.items():
        print(f"{program}: {why}", file=sys.stderr)
    return 1 if failed else 0


def run_measure(args):
    return 1 if measure.measure(args.round, args.out, args.starts) else 0


def run_evaluate(args):
    print(evaluate.evaluate(args.round, args.measured, args.machine), end="")
    return 0


def run_spreads(args):
    rounds = [(args.round, args.measured), *args.also]
    print(spreads.spreads(rounds, args.foretrace, args.machine, args.gpus), end="")
    return 0


def run_known_host(args):
    print(known_host.known_host(args.round, args.measured, args.machine, args.foretrace), end="")
    return 0


def run_prices(args):
    print(prices.prices([args.round, *args.also], args.foretrace, args.machine,
                        args.evaluated or args.machine, args.classes, args.parameters), end="")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(name, function, about):
        sub = commands.add_parser(name, help=about, description=about)
        sub.add_argument("round", type=pathlib.Path, help="the round's directory")
        sub.set_defaults(run=function)
        return sub

    sub = command("generate", run_generate, "write the programs of a round")
    sub.add_argument("seed", nargs="?",
                     help="text whose hash is the seed; default: foretrace blind ROUND")
    sub.add_argument("--gpus", type=int, choices=(2, 4, 8), default=2,
                     help="2: programs of one and two GPUs; 4, 8: programs of so many")
    sub = command("predict", run_predict, "predict every region on a machine model")
    sub.add_argument("--machine", default="h200-nvswitch-8")
    sub.add_argument("--foretrace", default="foretrace", help="the program to predict with")
    sub.add_argument("--gpus", type=int, default=8, help="programs of at most so many GPUs")
    sub = command("measure", run_measure, "run the round on this machine's GPUs")
    sub.add_argument("out", type=pathlib.Path)
    sub.add_argument("--starts", type=int, default=3, help="process starts of each program")
    sub = command("evaluate", run_evaluate, "compare the measured round with its predictions")
    sub.add_argument("measured", type=pathlib.Path, help="measured.csv")
    sub.add_argument("--machine", default="h200-nvswitch-8")
    sub = command("known-host", run_known_host,
                  "compare it with predictions for the host's speed that was measured beside it")
    sub.add_argument("measured", type=pathlib.Path, help="measured.csv")
    sub.add_argument("--machine", default="h200-nvswitch-8")
    sub.add_argument("--foretrace", default="foretrace", help="the program to predict with")
    sub = command("spreads", run_spreads, "how far the round was off, for a machine file's bands")
    sub.add_argument("measured", type=pathlib.Path, help="measured.csv")
    sub.add_argument("--also", nargs=2, action="append", default=[], type=pathlib.Path,
                     metavar=("ROUND", "MEASURED"), help="another round to learn from")
    sub.add_argument("--machine", default="h200-nvswitch-8")
    sub.add_argument("--foretrace", default="foretrace", help="the program to predict with")
    sub.add_argument("--gpus", type=int, default=8, help="programs of at most so many GPUs")
    sub = command("prices", run_prices, "factors on parameters that fit one-GPU programs of rounds")
    sub.add_argument("parameters", nargs="+", help="as in a machine file, e.g. host.malloc")
    sub.add_argument("--also", action="append", default=[], type=pathlib.Path, metavar="ROUND",
                     help="another round to learn from")
    sub.add_argument("--class", dest="classes", action="append", required=True,
                     help="the programs' class, e.g. allocation; may be repeated")
    sub.add_argument("--machine", default="h200-nvswitch-8", help="the file to start from")
    sub.add_argument("--evaluated", metavar="MACHINE",
                     help="whose evaluation-MACHINE.csv says what was measured; default: --machine")
    sub.add_argument("--foretrace", default="foretrace", help="the program to predict with")
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
