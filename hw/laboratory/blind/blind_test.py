"""python3 blind_test.py FORETRACE: rounds are what they say, and their figures are right."""

import collections
import concurrent.futures
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import evaluate
import generate
import known_host
import measure
import predict
import prices
from families import ON_SEVERAL, TABLE

ALIGNMENT = "is no multiple of 8, so cuBLAS takes a"
FORETRACE = sys.argv.pop(1) if len(sys.argv) > 1 else "foretrace"
FEW = [(class_, min(one, 2), min(two, 2), variants) for class_, one, two, variants in TABLE]


def regions_of(ops, times=1):
    """Names of regions with how often they run in a pass."""
    for item in ops:
        (name, keys), = item.items()
        if name == "region":
            yield keys["name"], times
        yield from regions_of(keys.get("ops", []),
                              times * keys["times"] if name == "repeat" else times)


def in_folder(function):
    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            function(self, pathlib.Path(folder))
    run.__name__ = function.__name__
    return run


class Generator(unittest.TestCase):
    @in_folder
    def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(self, folder):
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            generate.generate(folder / name, seed)
        text = {name: {path.relative_to(folder / name): path.read_bytes()
                       for path in (folder / name).rglob("*") if path.is_file()} for name in "abc"}
        self.assertEqual(text["a"], text["b"])
        self.assertNotEqual(text["a"], text["c"])

    def test_a_round_is_large_and_its_classes_are_balanced(self):
        for seed in (1, 2, 3):
            regions, gpus, programs = collections.Counter(), collections.Counter(), 0
            for _, class_, program in generate.programs(seed):
                programs += 1
                gpus[program.gpus] += 1
                names = collections.Counter()
                for _, ops in program.threads.values():
                    names.update(dict(regions_of(ops)))
                regions[class_] += sum(names.values())
            self.assertGreaterEqual(programs, 120)
            self.assertEqual(gpus[1], gpus[2])
            self.assertGreaterEqual(sum(regions.values()), 400)
            self.assertLessEqual(len(regions), 14)
            self.assertGreaterEqual(min(regions.values()), 20)
            self.assertLessEqual(max(regions.values()), sum(regions.values()) / 6)

    def test_a_round_on_four_or_eight_gpus_is_a_table_of_its_own(self):
        for gpus in (4, 8):
            made = [program for _, _, program in generate.programs(5, ON_SEVERAL, gpus)]
            self.assertEqual(len(made), 40)
            self.assertEqual({program.gpus for program in made}, {gpus})

    def test_a_region_has_one_name_in_its_program(self):
        for name, _, program in generate.programs(4):
            for process in range(program.processes):
                names = [region for on, ops in program.threads.values() if on in (None, process)
                         for region, _ in regions_of(ops)]
                self.assertEqual(len(names), len(set(names)), name)

    def test_nobody_picks_a_seed(self):
        self.assertEqual(generate.seed_text("round-2"), "foretrace blind round 2")


class Programs(unittest.TestCase):
    @in_folder
    def test_every_program_reads_is_free_of_warnings_and_ends(self, folder):
        rows = generate.generate(folder, generate.seed_of("a test"), FEW)

        def wrong(row):
            check = subprocess.run([FORETRACE, "check", str(folder / row["file"])], text=True,
                                   capture_output=True, check=False)
            warnings = [line for line in check.stderr.splitlines() if "warning: " in line]
            odd = [line for line in warnings if ALIGNMENT in line]  # odd shapes are wanted
            return check.stderr if check.returncode or warnings != odd else ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.assertEqual("".join(pool.map(wrong, rows)), "")
        self.assertEqual(predict.predict(folder, FORETRACE, "h200-nvswitch-8"), {})
        self.assertEqual(predict.predict(folder, FORETRACE, "h100-nvswitch-8", 1), {})
        predicted = generate.read_rows(folder / "predicted-h200-nvswitch-8.csv")
        self.assertEqual({row["program"] for row in predicted}, {row["program"] for row in rows})
        on_one = {row["program"] for row in rows if row["gpus"] == 1}
        predicted = generate.read_rows(folder / "predicted-h100-nvswitch-8.csv")
        self.assertEqual({row["program"] for row in predicted}, on_one)


HARNESS = """#!/usr/bin/env python3
# Stands for mpirun and foretrace-hw: writes 3 samples of one region; 'bad' fails, 'late' hangs.
import json, pathlib, sys, time
files = [pathlib.Path(a) for a in sys.argv if a.endswith(".yaml")]
runs = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
for at, file in enumerate(files):
    print(f"[{at + 1}/{len(files)}] {file.stem}: measuring", file=sys.stderr, flush=True)
    if file.stem == "late":
        (file.parent / "the time is used up").touch()
        time.sleep(3600)
    (runs / file.stem).mkdir()
    (runs / "environments").mkdir(exist_ok=True)
    (runs / "environments" / "3f0c.json").write_text("{}")
    kind = "failed" if file.stem == "bad" else "completed"
    (runs / file.stem / "measured.timeline.json").write_text(json.dumps({"outcome": {
        "kind": kind}, "starts": [{"start": 0, "environment": "3f0c", "launch_ns": [3000, 4000]}], "regions": [{"name": "r", "instance": 0, "process": 0, "per": 2,
                                    "samples_ns": [4000, 2000, 9000]}]}))
    if file.stem == "bad":
        sys.exit("error: process 0: it is bad")
"""


class Measurement(unittest.TestCase):
    def programs(self, *names):
        return [{"program": name, "processes": "1", "environment": "", "file": f"{name}.yaml"}
                for name in names]

    def measured(self, folder, *names):
        """What is measured of the programs, the time being used up once 'late' has begun."""
        harness = folder / "harness"
        harness.write_text(HARNESS)
        harness.chmod(0o755)
        run = measure.Round(folder, folder / "out", "foretrace-hw", str(harness), 3, 3600)
        run.left = lambda: 0 if (folder / "the time is used up").exists() else 3600
        run.say = lambda line: None
        run.measure(self.programs(*names), 2)
        run.log.close()
        return (generate.read_rows(folder / "out" / "measured.csv"),
                generate.read_rows(folder / "out" / "failed.csv"))

    @in_folder
    def test_programs_behind_one_that_fails_are_measured(self, folder):
        rows, failed = self.measured(folder, "first", "bad", "last")
        self.assertEqual([(row["program"], row["start"]) for row in rows],
                         [("first", "1"), ("last", "1"), ("first", "2"), ("last", "2")])
        self.assertEqual([rows[0][key] for key in ("median_us", "min_us", "max_us", "samples",
                                                   "launch_us")],
                         ["2.000", "1.000", "4.500", "3", "3.500"])
        self.assertEqual([(row["program"], row["reason"]) for row in failed],
                         [("bad", "error: process 0: it is bad")] * 2)

    @in_folder
    def test_what_the_time_does_not_suffice_for_is_listed(self, folder):
        rows, failed = self.measured(folder, "first", "late", "last")
        self.assertEqual({row["program"] for row in rows}, {"first"})
        self.assertLessEqual({"late", "last"}, {row["program"] for row in failed})
        self.assertTrue(all("time was used up" in row["reason"] for row in failed))

    def test_programs_of_one_environment_share_a_start(self):
        rows = [{"processes": p, "environment": e} for p, e in
                [("2", ""), ("1", ""), ("1", "A=1"), ("1", "")]]
        self.assertEqual([len(group) for group in measure.groups_of(rows)], [2, 1, 1])

    @in_folder
    def test_a_cold_program_has_a_start_of_its_own(self, folder):
        for name, text in (("a", "name: a\n"), ("b", "name: b\nwarmup: 0\n"), ("c", "name: c\n")):
            (folder / name).write_text(text)
        rows = [{"processes": "1", "environment": "", "file": name} for name in "abc"]
        groups = measure.groups_of(rows, folder)
        self.assertEqual([[row["file"] for row in group] for group in groups], [["a", "c"], ["b"]])


class KnownHost(unittest.TestCase):
    LAUNCHES = """
name: launches
threads:
  main:
    - region:
        name: launches
        ops:
          - repeat: {times: 200, ops: [{spin: {duration: 100ns, stream: s}}]}
          - stream_synchronize: {stream: s}
streams: {s: {}}
schema_version: 1
"""

    @in_folder
    def test_a_program_is_predicted_for_the_host_of_each_start(self, folder):
        (folder / "launches.yaml").write_text(self.LAUNCHES)
        generate.write_rows(folder / "programs.csv", ["program", "class", "gpus", "file"],
                            [{"program": "launches", "class": "c", "gpus": "1", "file": "launches.yaml"}])
        plain = predict.simulate(FORETRACE, folder / "launches.yaml", "h200-1")
        us = plain["regions"][0]["samples_ns"][0] / 1000
        # A host that takes twice as long for everything that it does, in two of three starts.
        rows = [{"program": "launches", "region": "launches", "instance": "0", "process": "0",
                 "start": start, "median_us": factor * us, "min_us": "", "max_us": "", "samples": 1,
                 "launch_us": factor * plain["launch_ns"] / 1000}
                for start, factor in (("1", 2), ("2", 1), ("3", 2))]
        generate.write_rows(folder / "measured.csv", measure.COLUMNS, rows)
        known_host.known_host(folder, folder / "measured.csv", "h200-1", FORETRACE)
        row, = generate.read_rows(folder / "known-host-h200-1.csv")
        self.assertLess(abs(float(row["error"])), 0.03)
        self.assertEqual(row["starts"], "3")

    def test_what_no_start_says_is_left_out(self):
        rows = [{"program": "old", "start": "1"}, {"program": "new", "start": "1", "launch_us": "4"}]
        self.assertEqual(known_host.launches_of(rows), {"new": {"1": 4.0}})
        self.assertEqual(known_host.factor_of({}, 4.0), 1)


class Evaluation(unittest.TestCase):
    def rows(self):
        """Program p: a region of two processes, and one that was not measured; q: one region."""
        def predicted(program, region, process, us):
            return {"program": program, "class": "c" + program, "region": region, "instance": "0",
                    "process": process, "predicted_us": us, "low_us": "90", "high_us": "110"}

        def measured(program, region, process, start, us):
            return {"program": program, "region": region, "instance": "0", "process": process,
                    "start": start, "median_us": us}

        return evaluate.join(
            [predicted("p", "r", "0", "80"), predicted("p", "r", "1", "120"),
             predicted("p", "lost", "0", "1"), predicted("q", "s", "0", "50"),
             predicted("u", "one", "0", "1"), predicted("u", "two", "0", "1")],
            [measured("p", "r", "0", "1", "90"), measured("p", "r", "0", "2", "100"),
             measured("p", "r", "0", "3", "120"), measured("p", "r", "1", "1", "96"),
             measured("q", "s", "0", "1", "200"), measured("q", "new", "0", "1", "7")],
            {"p": "2", "q": "1"})

    def test_error_band_and_spread_are_of_the_median_over_starts(self):
        row = self.rows()[0][0]
        self.assertEqual((row["measured_us"], row["starts"], row["in_band"]), (100, 3, 1))
        self.assertAlmostEqual(row["error"], -0.2)
        self.assertAlmostEqual(row["spread"], 0.3)

    @in_folder
    def test_the_page_has_a_part_for_each_machine_and_the_newest_of_each(self, folder):
        page = folder / "evaluation.md"
        for title, text in (("h200-1", "old\n"), ("h100", "one\n\n| two |\n"), ("h200-1", "new\n")):
            evaluate.write_part(page, title, text)
        self.assertEqual(page.read_text(), "# Evaluation\n\n## h100\n\none\n\n| two |\n\n## h200-1\n\nnew\n")

    def test_a_region_counts_once_on_its_slowest_process(self):
        rows, missing = self.rows()
        self.assertEqual([row["counts"] for row in rows], [1, 0, 1])
        self.assertEqual(missing, [("p", "lost", "not measured"), ("u", "", "not measured"),
                                   ("u", "", "not measured"), ("q", "new", "not predicted")])

    def test_the_summary_has_the_figures_of_what_counts(self):
        rows, missing = self.rows()
        values = evaluate.figures(rows)  # errors -20 % and -75 %
        self.assertEqual(values["regions"], 2)
        for key, value in (("median", 0.475), ("mean", 0.475), ("90th", 0.695), ("95th", 0.7225),
                           ("worst", 0.75), ("bias", -0.475), ("in band", 0.5), ("spread", 0.15)):
            self.assertAlmostEqual(values[key], value, msg=key)
        text = evaluate.summary(rows, missing)
        self.assertIn("| cq | 1 | 75.0 % | 75.0 % |", text)
        self.assertIn("1 programs were not measured: u\n", text)
        self.assertIn("2 rows could not be joined", text)


class Prices(unittest.TestCase):
    def test_the_factor_that_brings_predictions_nearest_is_found(self):
        def error_of(factors):  # best at 2 and at 1, where it is 0.1
            return 0.1 + abs(math.log(factors["a"] / 2)) + abs(math.log(factors["b"]))

        factors, before, after = prices.search(["a", "b"], error_of)
        self.assertAlmostEqual(before, 0.1 + math.log(2))
        self.assertLess(after, 0.1 + math.log(prices.STEPS[-1]) / 2 + 0.01)
        self.assertEqual(factors["b"], 1)

    def test_a_gain_within_noise_moves_nothing(self):
        factors, before, after = prices.search(["a"], lambda f: 1 - 1e-4 * f["a"])
        self.assertEqual((factors, before), ({"a": 1}, after))

    def test_the_price_that_a_rounds_truth_was_made_with_comes_out(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory)
            (path / "p.yaml").write_text("""schema_version: 1
name: p
buffers: {x: {memory: device, size: 1MiB}}
threads: {main: [{region: {name: r, ops: [{malloc: {buffer: x}}, {free: {buffer: x}}]}}]}
""")
            options = ["--with=host.malloc=2.25x"]
            truth = predict.simulate(FORETRACE, path / "p.yaml", "h200-nvswitch-8", options)
            rows = predict.rows_of("p", "c", truth, "model")
            generate.write_rows(path / "programs.csv", ["program", "class", "gpus", "file"],
                                [{"program": "p", "class": "c", "gpus": 1, "file": "p.yaml"}])
            generate.write_rows(path / "evaluation-m.csv",
                                ["program", "region", "instance", "process", "counts",
                                 "measured_us"],
                                [{**{k: row[k] for k in ("program", "region", "instance",
                                                         "process")},
                                  "counts": 1, "measured_us": row["predicted_us"]}
                                 for row in rows])
            text = prices.prices([path], FORETRACE, "h200-nvswitch-8", "m", ["c"],
                                 ["host.malloc"])
        self.assertIn("host.malloc: 2.25x\n", text)


if __name__ == "__main__":
    unittest.main()
