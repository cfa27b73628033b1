"""measured.timeline.json of a measured step: from a profiler's events to spans that `foretrace compare` joins. Needs no PyTorch."""

import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scenarios" / "pytorch"))

from foretrace import kernels, record, timeline  # noqa: E402
from foretrace.command import parse  # noqa: E402
from foretrace.environment import script_digest  # noqa: E402
from foretrace.measurement import Measurement  # noqa: E402
from foretrace.whole import write_whole  # noqa: E402

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
SPLIT = "void splitKreduce_kernel<32, 16, int>(float*)"


class Whole(unittest.TestCase):
    def test_a_file_is_the_old_one_or_the_new_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.yaml"
            write_whole(path, "old")
            for call in ("os.fsync", "os.replace"):
                with unittest.mock.patch(call, side_effect=OSError(28, "No space left on device")), self.assertRaises(OSError):
                    write_whole(path, "new")
                self.assertEqual(path.read_text(), "old")
                self.assertEqual([file.name for file in pathlib.Path(folder).iterdir()], ["step.yaml"])
            write_whole(path, b"new")
            self.assertEqual(path.read_text(), "new")

    def test_no_scenario_of_the_old_record_stands_beside_a_new_one(self):
        with tempfile.TemporaryDirectory() as folder:
            step, calls = pathlib.Path(folder) / "step.yaml", pathlib.Path(folder) / "rank0.calls.jsonl.gz"
            step.write_text("old")
            calls.write_text("old")
            full = OSError(28, "No space left on device")
            with unittest.mock.patch("os.fsync", side_effect=full), self.assertRaises(OSError):
                record.write(calls, ["{}"])
            self.assertEqual((step.read_text(), calls.read_text()), ("old", "old"))
            record.write(calls, ["{}"])  # killed here, before the new scenario is written
            self.assertFalse(step.exists())

    def test_a_link_stays_one_and_so_does_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            link, target = pathlib.Path(folder) / "link", pathlib.Path(folder) / "target"
            link.symlink_to(target)
            write_whole(link, "x")
            self.assertTrue(link.is_symlink())
            self.assertEqual(target.read_text(), "x")
            write_whole("/dev/null", "x")
            self.assertFalse(pathlib.Path("/dev/null").is_file())


class Arguments(unittest.TestCase):
    def test_counts_that_no_machine_has_are_refused(self):
        for words in (["--world-size", "0"], ["--world-size", "1000000000"], ["--gpus-per-node", "0"], ["--memory", "-1"], ["--step", "0"],
                      ["--ranks", "1"], ["--ranks", "x"], ["--more", "-1"]):
            with self.assertRaises(SystemExit) as ended, unittest.mock.patch("sys.stderr"):
                parse(["capture", "-o", "out", *words, "--", "train.py"])
            self.assertEqual(ended.exception.code, 2, words)


class ScriptDigest(unittest.TestCase):
    def test_is_of_the_text_the_arguments_and_the_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            script, other = pathlib.Path(folder) / "train.py", pathlib.Path(folder) / "elsewhere.py"
            script.write_text("batch = 8\n")
            other.write_text("batch = 8\n")
            digest = script_digest([str(script), "--layers", "2"], 1)
            self.assertRegex(digest, "^[0-9a-f]{16}$")
            self.assertEqual(digest, script_digest([str(other), "--layers", "2"], 1))
            script.write_text("batch = 16\n")
            others = [script_digest([str(script), "--layers", "2"], 1), script_digest([str(other), "--layers", "3"], 1), script_digest([str(other)], 1),
                      script_digest([str(other), "--layers", "2"], 2), script_digest(["package.train", "--layers", "2"], 1)]
            self.assertEqual(len({digest, *others}), 6)

    def test_is_none_where_nothing_is_called(self):
        self.assertEqual((script_digest([], 1), script_digest([""], 1)), ("", ""))


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


def launch(correlation, ts, kernel, gpu_ts, dur, name="cudaLaunchKernel", stream=7):
    return [event("cuda_runtime", name, ts, 2, correlation=correlation), event("kernel", kernel, gpu_ts, dur, tid=stream, correlation=correlation, stream=stream)]


def trace():
    return [event("user_annotation", "foretrace.step", 100, 1000), event("cpu_op", "aten::add", 110, 20), *launch(1, 115, ADD, 120, 5),
            event("cpu_op", "aten::mm", 140, 30), *launch(2, 145, "nvjet_tst_128x64_64x4", 150, 10), *launch(3, 150, SPLIT, 160, 2),
            event("cpu_op", "aten::mm", 180, 30), *launch(4, 185, "nvjet_tst_128x64_64x4", 190, 10),
            event("cuda_runtime", "cudaGraphLaunch", 220, 9, correlation=5), event("kernel", ADD, 230, 4, tid=7, correlation=5, stream=7),
            event("kernel", ADD, 235, 4, tid=7, correlation=5, stream=7),
            event("cuda_runtime", "cudaMemcpyAsync", 240, 3, correlation=6), event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 245, 1, tid=7, correlation=6,
                                                                                   stream=7, bytes=4),
            event("cuda_runtime", "cudaStreamSynchronize", 250, 30)]


def result(rank=0, **more):
    return {"rank": rank, "outcome": "measured", "free_running_ms": 1.0, "turns_ms": [4.0, 4.4], "steps_of_turn": 4, "profiled_ms": 1.2,
            "memory": {"allocated": [1, 30, 2], "reserved": [4, 50, 4]}, **more}


class Timeline(unittest.TestCase):
    def setUp(self):
        lines, _ = kernels.rows(trace())
        self.made = timeline.document("out", {"gpu": "NVIDIA H100", "torch": "2.11", "script_digest": "0123456789abcdef"}, [result()], {0: lines})

    def spans(self, kind):
        ops = {op["id"]: op for op in self.made["ops"] if op["kind"] == kind}
        return [(ops[s[0]]["label"], s[1], s[5]) for s in self.made["spans"] if s[0] in ops]

    def test_kernels_of_one_product_are_parts_of_one_execution(self):
        self.assertEqual([s for s in self.spans("library_kernel") if s[0].startswith("nvjet")],
                         [("nvjet_tst_128x64_64x4", 0, 0), ("nvjet_tst_128x64_64x4", 0, 1), ("nvjet_tst_128x64_64x4", 0, 2), ("nvjet_tst_128x64_64x4", 1, 0),
                          ("nvjet_tst_128x64_64x4", 1, 1)])

    def test_kernels_of_a_graph_are_parts_of_its_launch(self):
        self.assertEqual([s[1:] for s in self.spans("graph_launch")], [(0, 0), (0, 1), (0, 2)])

    def test_copies_have_direction_and_size_and_waits_are_calls(self):
        copy = next(op for op in self.made["ops"] if op["kind"] == "memcpy_async")
        self.assertEqual((copy["label"], copy["size_bytes"]), ("d2h pinned", 4))
        self.assertEqual(self.spans("synchronize"), [("cudaStreamSynchronize", 0, 0)])

    def test_the_region_has_a_sample_for_each_turn_and_the_peak_of_memory_is_there(self):
        region = self.made["regions"][0]
        self.assertEqual((region["samples_ns"], region["per"], region["traced_ns"]), ([4000000, 4400000], 4, 4800000))
        self.assertEqual(self.made["memory_peaks"], [[0, 0, 30, 50]])

    def test_what_was_measured_is_remembered(self):
        self.assertEqual(self.made["versions"], {"torch": "2.11", "script_digest": "0123456789abcdef"})

    def test_a_rank_that_failed_is_said(self):
        made = timeline.document("out", {}, [result(), {"rank": 1, "outcome": "out_of_memory", "error": "CUDA out of memory", "memory": {}}], {})
        self.assertEqual(made["outcome"], {"kind": "failed", "explanation": ["rank 1: CUDA out of memory"]})

    def test_the_file_is_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            timeline.write(pathlib.Path(folder) / "measured.timeline.json", self.made)
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["measured.timeline.json"])
            self.assertEqual(json.loads((pathlib.Path(folder) / "measured.timeline.json").read_text())["kind"], "timeline")


class Turns(unittest.TestCase):
    def test_steps_follow_each_other_by_turns_before_the_profiler(self):
        measurement = Measurement(warm=3, synchronised=4, free=4, turns=2)
        phases, places = [], []
        for measurement.index in range(18):
            phases.append(measurement._phase())
            places.append(measurement._place_in_turn())
        self.assertEqual(phases, ["warm"] * 3 + ["synchronised"] * 4 + ["free"] * 8 + ["before profile", "profiled", "before profile"])
        self.assertEqual(places[7:15], [0, 1, 2, 3, 0, 1, 2, 3])


if __name__ == "__main__":
    unittest.main()
