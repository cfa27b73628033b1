"""judge.py on two sweeps made up here: which sizes count where, and which processes do not count."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import judge


def timeline(times, parameters=None):
    """times: {(region, instance): [us of each process]}"""
    regions = [{"name": name, "instance": instance, "process": process, "per": 5,
                "samples_ns": [us * 5000]}
               for (name, instance), each in times.items() for process, us in enumerate(each)]
    return {"versions": {"parameters": parameters} if parameters else {}, "regions": regions}


class Judge(unittest.TestCase):
    def test_sizes_that_ranks_share_evenly_are_those_of_the_fit(self):
        self.assertEqual(judge.parameters_of({"versions": {}}, 3),
                         ["ranks=3", "small=48B", "large=6144KiB"])
        noted = {"versions": {"parameters": "ranks=8 small=64B"}}
        self.assertEqual(judge.parameters_of(noted, 8), ["ranks=8", "small=64B"])

    def test_every_other_size_is_held_out_across_both_loops(self):
        measured = judge.times_of(timeline({("small_graph", 16): [10], ("large_graph", 0): [20],
                                            ("large_graph", 1): [40], ("large", 0): [1]}))
        prediction = judge.times_of(timeline({("small_graph", 16): [11], ("large_graph", 0): [22],
                                              ("large_graph", 1): [44]}))
        errors = judge.errors_of(measured, prediction, set(), False)
        self.assertEqual({key: len(each) for key, each in errors.items()},
                         {(True, False): 2, (True, True): 1})
        self.assertAlmostEqual(errors[True, True][0], 0.1)

    def test_the_slowest_process_counts_unless_it_is_left_out(self):
        self.assertEqual(judge.time_of({0: 5, 1: 9}, set(), False), 9)
        self.assertEqual(judge.time_of({0: 5, 1: 9}, {1}, False), 5)
        self.assertEqual(judge.time_of({0: 5, 1: 9, 2: 6}, {1}, True), 6)

    def test_the_table_has_a_row_for_each_operation_and_their_mean(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for operation, us in (("broadcast", 10), ("reduce", 20)):
                run = root / "2_ranks" / f"nccl_{operation}"
                run.mkdir(parents=True)
                (run / "measured.timeline.json").write_text(json.dumps(
                    timeline({("small_graph", i): [us] for i in (0, 1, 14, 15)}, "ranks=2")))
            made_up = json.dumps(timeline({("small_graph", i): [11] for i in (0, 1, 14, 15)}))
            fake = root / "foretrace"
            fake.write_text("#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n"
                            f"echo '{made_up}' > $2/predicted.timeline.json\n")
            fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
            text = subprocess.run([sys.executable, "-B", str(pathlib.Path(judge.__file__)),
                                   str(root), "--foretrace", str(fake)],
                                  capture_output=True, text=True, check=True).stdout
        self.assertIn("| 2 | broadcast | 10.0 % (10 %) |", text)
        self.assertIn("| 2 | reduce | 45.0 % (45 %) |", text)
        self.assertIn("| 2 | all | 27.5 % | 27.5 % | 27.5 % | 27.5 % |", text)


if __name__ == "__main__":
    unittest.main()
