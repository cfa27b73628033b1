#!/usr/bin/env python3
"""Blind rounds: random programs that are predicted, committed, and only then measured.

  blind.py generate reports/blind/round-1
  blind.py predict  reports/blind/round-1 --machine h200-nvswitch-8
  blind.py measure  reports/blind/round-1 OUT          (measure.sh)
  blind.py evaluate reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py known-host reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py spreads  reports/blind/round-1 OUT/measured.csv --machine h200-nvswitch-8
  blind.py prices   reports/blind/round-1 --machine h200-nvswitch-8 --class allocation host.malloc
  blind.py pack     reports/blind/round-1              (into reports/blind/round-1.tar.gz)
  blind.py unpack   reports/blind/round-1 DIRECTORY
  blind.py index    reports/blind                      (its README.md)
"""

import argparse
import contextlib
import json
import pathlib
import sys

import evaluate
import generate
from families import ON_SEVERAL, TABLE
import index
import known_host
import measure
import predict
import prices
import rounds
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
    with rounds.opened(args.round) as inside:
        failed = predict.predict(inside, args.foretrace, args.machine, args.gpus, into=args.round)
    for program, why in failed.items():
        print(f"{program}: {why}", file=sys.stderr)
    return 1 if failed else 0


def run_measure(args):
    with rounds.opened(args.round) as inside:
        return 1 if measure.measure(inside, args.out, args.starts) else 0


def run_evaluate(args):
    with rounds.opened(args.round) as inside:
        measured = rounds.found(args.measured, args.round, inside)
        print(evaluate.evaluate(inside, measured, args.machine, into=args.round), end="")
    return 0


def run_spreads(args):
    with contextlib.ExitStack() as stack:
        every = []
        for round_, measured in [(args.round, args.measured), *args.also]:
            inside = stack.enter_context(rounds.opened(round_))
            every.append((inside, rounds.found(measured, round_, inside)))
        print(spreads.spreads(every, args.foretrace, args.machine, args.gpus, args.known), end="")
    return 0


def run_known_host(args):
    with rounds.opened(args.round) as inside:
        measured = rounds.found(args.measured, args.round, inside)
        print(known_host.known_host(inside, measured, args.machine, args.foretrace, into=args.round), end="")
    return 0


def run_prices(args):
    with contextlib.ExitStack() as stack:
        every = [stack.enter_context(rounds.opened(round_)) for round_ in [args.round, *args.also]]
        print(prices.prices(every, args.foretrace, args.machine, args.evaluated or args.machine,
                            args.classes, args.parameters), end="")
    return 0


def run_pack(args):
    archive = rounds.pack(args.round)
    print(archive)
    return run_index(argparse.Namespace(directory=archive.parent))


def run_unpack(args):
    into = args.into or args.round
    print(f"{into}: {rounds.unpack(args.round, into)} files")
    return 0


def run_index(args):
    (args.directory / "README.md").write_text(index.page(args.directory), encoding="utf-8")
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
    sub.add_argument("--starts", type=int, default=3, help="process launches of each program")
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
    sub.add_argument("--known", action="store_true", help="with each start's host known by its launches: blind.*_known")
    command("pack", run_pack, "move its files into one archive, and renew the index")
    sub = command("unpack", run_unpack, "write the files of its archive into a folder")
    sub.add_argument("into", nargs="?", type=pathlib.Path, help="default: the round's directory, which git ignores")
    sub = commands.add_parser("index", help="renew DIRECTORY/README.md: every archive, and the trend")
    sub.add_argument("directory", type=pathlib.Path)
    sub.set_defaults(run=run_index)
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
