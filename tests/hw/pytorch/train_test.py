"""The measuring program for training steps, as far as it goes without a GPU; its steps only where there is PyTorch."""

import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "hw" / "pytorch"))

from steps import configurations  # noqa: E402
import timing  # noqa: E402
import train  # noqa: E402
import workers  # noqa: E402

HAS_TORCH = importlib.util.find_spec("torch") is not None
ALL = configurations.all_configurations()


class Directory(unittest.TestCase):
    def test_a_directory_is_one_programs_to_measure_into(self):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            first = train.own(out)
            with self.assertRaisesRegex(train.ProgramError, "another train.py measures into it"):
                train.own(out)
            first.close()
            train.own(out).close()

    def test_what_is_forgotten_is_forgotten_at_once_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as directory:
            results = pathlib.Path(directory) / "results.jsonl"
            results.write_text('{"id": "kept"}\n{"id": "gone"}\n', encoding="utf-8")
            with unittest.mock.patch("os.replace", side_effect=KeyboardInterrupt), \
                    contextlib.suppress(KeyboardInterrupt):
                workers.forget(results.parent, {"gone"})
            self.assertEqual(results.read_text(encoding="utf-8"), '{"id": "kept"}\n{"id": "gone"}\n')
            workers.forget(results.parent, {"gone"})
            self.assertEqual(results.read_text(encoding="utf-8"), '{"id": "kept"}\n')


class Configurations(unittest.TestCase):
    def test_every_configuration_has_an_id_of_its_own(self):
        self.assertEqual(len(ALL), len({one.id for one in ALL}))
        self.assertGreaterEqual(len(ALL), 60)

    def test_half_of_them_judge_and_every_family_does_both(self):
        seen = [one for one in ALL if not one.blind]
        judging = [one for one in seen if one.mark == "judge"]
        self.assertAlmostEqual(len(judging) / len(seen), 0.5, delta=0.05)
        for family in {one.family for one in seen}:
            self.assertEqual({one.mark for one in seen if one.family == family}, {"fit", "judge"}, family)

    def test_what_was_predicted_before_it_was_measured_only_judges(self):
        blind = [one for one in ALL if one.blind]
        self.assertGreaterEqual(len(blind), 40)
        self.assertEqual({one.mark for one in blind}, {"judge"})
        self.assertEqual({one.ranks for one in blind}, {1, 2, 4, 8})

    def test_a_mark_depends_on_the_id_alone(self):
        for one in ALL:
            self.assertEqual(dataclasses.replace(one, layers=99, family="other").mark, one.mark)

    def test_parameter_counts_are_those_of_the_published_models(self):
        counts = {one.id: one.parameters for one in ALL}
        self.assertAlmostEqual(counts["gpt_gpt2_124m_s1024_b8_amp"] / 124.5e6, 1, delta=0.005)
        self.assertAlmostEqual(counts["llama_llama_1b_s4096_b1"] / 1235.8e6, 1, delta=0.001)
        self.assertAlmostEqual(counts["llama_qwen_0.5b_s4096_b1"] / 494.0e6, 1, delta=0.001)

    def test_sizes_divide_as_their_layout_needs(self):
        for one in ALL:
            self.assertEqual(one.heads % one.kv_heads, 0, one.id)
            if one.parallel == "tp":
                ranks = one.ranks
                self.assertEqual((one.kv_heads % ranks, one.ffn % ranks, one.vocab % ranks, one.sequence % ranks),
                                 (0, 0, 0, 0), one.id)
                self.assertFalse(one.tied, one.id)
            if one.parallel == "pp":
                self.assertEqual(one.layers % 2, 0, one.id)
                self.assertFalse(one.tied, one.id)
            self.assertEqual(one.microbatches > 1, one.parallel == "pp", one.id)

    def test_settings_are_known_ones(self):
        choices = {"precision": {"amp", "bf16", "tf32", "fp32"}, "optimizer": {"fused", "foreach"},
                   "recompute": {"none", "full", "selective"}, "compile": {"none", "blocks", "model"},
                   "parallel": {"none", "ddp", "fsdp", "tp", "pp"}, "style": {"gpt", "llama"}}
        for one in ALL:
            for key, allowed in choices.items():
                self.assertIn(getattr(one, key), allowed, one.id)


class CommandLine(unittest.TestCase):
    def refused(self, arguments):
        text = io.StringIO()
        with contextlib.redirect_stderr(text), self.assertRaises(SystemExit) as end:
            train.parse(arguments)
        self.assertEqual(end.exception.code, 2)
        return text.getvalue()

    def test_an_unknown_configuration_is_refused_by_name(self):
        self.assertIn("nonsense", self.refused(["-o", "out", "--only", "nonsense"]))

    def test_measuring_needs_a_directory(self):
        self.assertIn("-o OUT", self.refused([]))

    def test_only_one_gpu_leaves_out_what_needs_two(self):
        arguments = train.parse(["-o", "out"])
        self.assertEqual({one.ranks for one in train.choose(arguments, 1, "NVIDIA H100 80GB HBM3")}, {1})
        both = train.choose(arguments, 2, "NVIDIA H200")
        self.assertEqual({one.ranks for one in both}, {1, 2})
        self.assertFalse([one.id for one in both if one.only_on == "H100"])

    def test_most_gpus_come_first_and_fresh_ones_share_a_process_with_their_family_only(self):
        groups = train.batches(ALL, 8)
        self.assertEqual(groups[0][0].ranks, 8)
        for group in groups:
            self.assertEqual(len({one.ranks for one in group}), 1)
            if any(one.fresh for one in group):
                self.assertEqual(len({one.family for one in group}), 1)
        self.assertEqual(sum(map(len, groups)), len(ALL))


class Results(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = pathlib.Path(directory.name)
        self.two = next(one for one in ALL if one.ranks == 2)

    def write(self, rank, *lines):
        with (self.out / f"parts.rank{rank}.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def timing(self, milliseconds):
        return {"part": "timing", "id": self.two.id, "attempt": 0,
                "timing": {"step_time_ms_median": milliseconds, "free_running_ms": milliseconds,
                           "memory": {"allocated_peak_bytes": 7}}}

    def test_the_slowest_rank_is_the_step(self):
        self.write(0, self.timing(3.0))
        self.write(1, self.timing(4.0))
        line = workers.Parts(self.out).result(self.two, "GPU")
        self.assertEqual((line["verdict"], line["step_time_ms_median"]), ("measured", 4.0))

    def test_out_of_memory_on_one_rank_is_the_verdict(self):
        self.write(0, self.timing(3.0))
        self.write(1, {"part": "error", "id": self.two.id, "phase": "timing", "kind": "out_of_memory", "error": "no"})
        self.assertEqual(workers.Parts(self.out).result(self.two, "GPU")["verdict"], "out_of_memory")

    def test_what_a_dead_process_had_begun_is_found(self):
        self.write(0, {"part": "begin", "id": "a", "phase": "timing"}, {"part": "timing", "id": "a", "timing": {}},
                   {"part": "begin", "id": "b", "phase": "timing"})
        with (self.out / "parts.rank0.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"part": "tim')
        self.assertEqual(workers.Parts(self.out).started("timing"), ["b"])


class Restart(unittest.TestCase):
    """With a stand-in for the worker, which dies in the second configuration."""

    DYING = """
import json, os, sys
time, trace, out = (sys.argv[sys.argv.index(name) + 1] for name in ("--time", "--trace", "--out"))
with open(os.path.join(out, "parts.rank0.jsonl"), "a", encoding="utf-8") as file:
    for phase, ids in (("timing", time), ("trace", time + "," + trace)):
        for id in filter(None, ids.split(",")):
            print(json.dumps({"part": "begin", "id": id, "phase": phase}), file=file, flush=True)
            if id == os.environ["FATAL"] and phase == os.environ["FATAL_PHASE"]:
                os._exit(3)
            print(json.dumps({"part": phase, "id": id, phase: {}}), file=file, flush=True)
"""

    def measured(self, fatal, phase):
        """Parts after a batch of three whose configuration `fatal` kills its process in `phase`."""
        batch = [one for one in ALL if one.ranks == 1][:3]
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            (out / "worker.py").write_text(self.DYING, encoding="utf-8")
            os.environ.update(FATAL=batch[fatal].id, FATAL_PHASE=phase)
            here, workers.HERE = workers.HERE, out
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    workers.run_batch(batch, out, workers.time.time() + 3600, [])
            finally:
                workers.HERE = here
            parts = workers.Parts(out)
        return [[name for name in ("timing", "trace") if parts.has(one.id, name)] for one in batch], \
            [parts.has(one.id, "error") for one in batch]

    def test_a_new_process_goes_on_behind_the_configuration_that_killed_one(self):
        done, failed = self.measured(1, "timing")
        self.assertEqual(failed, [False, True, False])
        self.assertEqual(done, [["timing", "trace"], [], ["timing", "trace"]])

    def test_a_process_killed_by_a_trace_keeps_all_timings(self):
        done, failed = self.measured(1, "trace")
        self.assertEqual(failed, [False, True, False])
        self.assertEqual(done, [["timing", "trace"], ["timing"], ["timing", "trace"]])


CHILDREN = str(workers.HERE.parents[1] / "scenarios" / "pytorch")


class Parent(unittest.TestCase):
    """A worker does not outlive the train.py that started it: it would measure beside the next one's, into its files."""

    WORKER = f"""
import os, pathlib, sys, time
sys.path.insert(0, {CHILDREN!r})
from foretrace.child import end_with
end_with(int(sys.argv[sys.argv.index("--parent") + 1]))
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(out / "began").write_text(str(os.getpid()))
time.sleep(600)
"""
    STARTER = f"""
import pathlib, sys, time
sys.path.insert(0, {str(workers.HERE)!r})
import workers
workers.HERE = out = pathlib.Path(sys.argv[1])
workers.start(1, [], out)
time.sleep(600)
"""

    @unittest.skipUnless(sys.platform.startswith("linux"), "by Linux's prctl")
    def test_a_worker_ends_with_the_process_that_started_it(self):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            (out / "worker.py").write_text(self.WORKER, encoding="utf-8")
            started = subprocess.Popen([sys.executable, "-c", self.STARTER, directory])
            began = out / "began"
            while started.poll() is None and not (began.exists() and began.read_text()):
                time.sleep(0.05)
            worker = int(began.read_text())
            started.kill()
            started.wait()
            for _ in range(100):
                stat = pathlib.Path(f"/proc/{worker}/stat")
                if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                    break
                time.sleep(0.1)
            else:
                os.kill(worker, 9)
                self.fail("the worker goes on")

    def test_a_worker_whose_parent_is_gone_does_not_begin(self):
        done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {CHILDREN!r}); from foretrace.child import end_with; "
                                                     "end_with(2**22 + 1); print('began')"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, "") if sys.platform.startswith("linux") else (0, "began\n"))


class Timing(unittest.TestCase):
    def test_short_steps_fill_the_least_time_and_long_ones_keep_to_the_most(self):
        self.assertEqual(timing.step_count(0.001), 800)
        self.assertEqual(timing.step_count(0.2), 8)
        self.assertEqual(timing.step_count(0.5), 4)
        self.assertEqual(timing.step_count(9.0), 3)

    def test_percentiles_lie_between_neighbours(self):
        self.assertAlmostEqual(timing.percentile([4.0, 1.0, 2.0, 3.0], 0.5), 2.5)
        self.assertAlmostEqual(timing.percentile([1.0, 2.0], 0.9), 1.9)


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Steps(unittest.TestCase):
    """On the CPU, at a tiny size: the code paths, not their times."""

    def step(self, one):
        import torch
        from layouts import make_step
        torch.manual_seed(1)
        return make_step(one, torch.device("cpu"), 0)

    def trials(self):
        return [configurations.shrunk(one) for one in ALL if one.ranks == 1 and one.compile == "none"]

    def test_every_step_on_one_gpu_learns_its_batch(self):
        for one in self.trials():
            with self.subTest(one.id):
                step = self.step(dataclasses.replace(one, optimizer="foreach"))
                losses = [float(step.run()) for _ in range(12)]
                self.assertLess(losses[-1], losses[0])

    def test_parameters_are_counted_as_the_modules_have_them(self):
        for one in self.trials():
            with self.subTest(one.id):
                counted = sum(parameter.numel() for parameter in self.step(one).model.parameters())
                self.assertEqual(counted, one.parameters)

    def test_recomputing_changes_no_loss(self):
        import torch
        one = dataclasses.replace(self.trials()[0], precision="fp32")
        losses = [self.step(dataclasses.replace(one, recompute=kind)).run() for kind in ("none", "full", "selective")]
        for loss in losses[1:]:
            torch.testing.assert_close(loss, losses[0])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
