"""train.py with scenario files, as far as it goes without a GPU: what a step says, its trace, its timeline, and whether `compare` and
`report` take that beside a prediction. Numbers and traces are those of a real H200 (reports/measured/pytorch_steps)."""

import contextlib
import dataclasses
import gzip
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hw" / "pytorch"))

import kineto  # noqa: E402
import step_result  # noqa: E402
import step_trace  # noqa: E402
import timing  # noqa: E402
import train  # noqa: E402
import workers  # noqa: E402
from program import ProgramError, read_program  # noqa: E402
from result import write_whole  # noqa: E402
from steps.configurations import all_configurations  # noqa: E402
from steps.scenario import configuration_of, scenario_text, why_no_scenario  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
MEASURED = ROOT / "reports/measured/pytorch_steps/h200_x2"
KNOWN = {one.id: one for one in all_configurations()}
TINY = "launch_gpt_tiny_s256_b8_amp"
STEP = """schema_version: 1
name: {name}
processes: {processes}
training_step:
  model: {{style: {style}, layers: 2, hidden: 256, heads: 4, ffn: 1024, vocab: 8192, tied: true}}
  batch: {{sequence: 256, micro: 8}}
  precision: {{parameters: float32}}
{more}"""


def step_file(directory, name="it", processes=1, style="gpt", more=""):
    file = pathlib.Path(directory) / f"{name}.yaml"
    file.write_text(STEP.format(name=name, processes=processes, style=style, more=more), encoding="utf-8")
    return file


def real_line(id):
    for line in gzip.decompress((MEASURED / "results.jsonl.gz").read_bytes()).decode().splitlines():
        if json.loads(line)["id"] == id:
            return json.loads(line)
    raise KeyError(id)


def real_trace(id, rank=0):
    """Its profiler's mark of the step stands for the annotation that train.py makes now."""
    with tarfile.open(MEASURED / "traces.tar.xz") as archive:
        trace = json.loads(archive.extractfile(f"{id}.rank{rank}.json").read(), strict=False)
    mark = next(one for one in trace["traceEvents"] if one.get("cat") == "user_annotation"
                and one["name"].startswith("ProfilerStep"))
    trace["traceEvents"].append(mark | {"name": "foretrace 0 0"})
    return trace


def foretrace(*words):
    return subprocess.run([FORETRACE, *map(str, words)], capture_output=True, text=True)


@unittest.skipUnless(FORETRACE, "FORETRACE: the command that reads scenarios")
class Scenarios(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.at = pathlib.Path(directory.name)

    def test_a_configuration_written_as_a_scenario_is_read_as_itself(self):
        apart = ("family", "full_trace", "fresh", "only_on", "blind", "processes")  # of the list, not of the step
        values = lambda one: {key: value for key, value in dataclasses.asdict(one).items() if key not in apart}
        seen = set()
        for one in list(KNOWN.values())[::17]:
            if why_no_scenario(one):
                continue
            file = self.at / "it.yaml"
            file.write_text(scenario_text(one), encoding="utf-8")
            read = configuration_of(read_program(file, FORETRACE))
            self.assertEqual((values(read), read.ranks), (values(one), one.ranks), one.id)
            seen.add(one.parallel)
        self.assertEqual(seen, {"none", "ddp", "fsdp", "tp", "pp"})

    def test_a_model_may_have_more_learned_positions_than_the_sequence(self):
        (self.at / "config.json").write_text((ROOT / "scenarios/architectures/gpt2.json").read_text(encoding="utf-8"))
        file = self.at / "it.yaml"
        file.write_text("schema_version: 1\nname: it\nprocesses: 1\ntraining_step:\n  model: gpt2\n"
                        "  batch: {sequence: 256}\n", encoding="utf-8")
        one = configuration_of(read_program(file, FORETRACE))
        self.assertEqual((one.sequence, one.positions, one.mark), (256, 1024, "judge"))
        self.assertAlmostEqual(one.parameters / 124.44e6, 1, delta=0.001)

    def test_what_it_does_not_run_is_named(self):
        for more, processes, style, words in (
                ("  parallel: {tensor: 2}\n  sharding: fsdp\n", 4, "llama", "data 2 x tensor 2"),
                ("  sharding: zero1\n", 2, "gpt", "sharding: zero1"),
                ("  sharding: none\n", 2, "gpt", "sharding: none"),
                ("  framework: megatron\n  attention: unfused\n", 1, "gpt", "'framework: megatron', 'attention: unfused'"),
                ("  loss: fused\n", 1, "llama", "loss: fused"),
                ("  parallel: {context: 2}\n", 2, "llama", "context: 2"),
                ("  sharding: fsdp\n  fsdp: {flat: true}\n", 2, "llama", "'flat: true'"),
                ("  parallel: {pipeline: 2}\n", 2, "llama", "tied embedding")):
            file = step_file(self.at, processes=processes, style=style, more=more)
            if "pipeline" in more:
                file.write_text(file.read_text().replace("micro: 8}", "micro: 8, passes: 4}"), encoding="utf-8")
            with self.assertRaisesRegex(ProgramError, f"it.yaml: train.py does not run .*{words}", msg=more):
                configuration_of(read_program(file, FORETRACE))

    def test_a_scenario_of_operations_is_left_to_measure_py(self):
        program = read_program(ROOT / "scenarios/examples/prefetch_two_streams.yaml", FORETRACE)
        with self.assertRaisesRegex(ProgramError, "no 'training_step'.*measure.py"):
            configuration_of(program)

    def test_a_step_that_nobody_wrote_is_no_traceback(self):
        program = read_program(step_file(self.at), FORETRACE)
        for wrong in ({}, [], "x", {"model": {}}, program.document["training_step"] | {"passes": "many"}):
            program.document["training_step"] = wrong
            with self.assertRaises(ProgramError):
                configuration_of(program)


class Traces(unittest.TestCase):
    def trace(self):
        event = lambda cat, name, ts, dur, tid=1, **args: {
            "ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}
        memory = lambda ts, bytes, device=1: {"ph": "i", "name": "[memory]", "ts": ts, "cat": "cpu_instant_event", "args": {
            "Device Type": device, "Total Allocated": bytes, "Total Reserved": 2 * bytes}}
        return {"baseTimeNanoseconds": 1000, "traceEvents": [
            event("user_annotation", "foretrace 0 0", 100, 100),
            event("cuda_runtime", "cudaLaunchKernel", 50, 2, correlation=1), event("kernel", "early", 60, 1, correlation=1),
            event("cuda_runtime", "cudaLaunchKernel", 110, 2, correlation=2),
            event("kernel", "gemm", 120, 30, tid=7, correlation=2, stream=7),
            event("cuda_runtime", "cudaLaunchKernel", 113, 2, tid=5, correlation=3),
            event("kernel", "gemm", 151, 9, tid=7, correlation=3, stream=7),
            event("cuda_driver", "cuLaunchKernelEx", 116, 1, tid=5, correlation=4),
            event("kernel", "ncclDevKernel_AllReduce", 130, 40, tid=20, correlation=4, stream=20),
            event("cuda_runtime", "cudaDeviceSynchronize", 160, 14, correlation=5),
            event("kernel", "stranger", 140, 1, correlation=77),
            event("cuda_runtime", "INVALID", 118, 1, correlation=6),
            event("cuda_runtime", "cudaLaunchKernel", 210, 1, correlation=8), event("kernel", "late", 215, 1, correlation=8),
            memory(40, 10), memory(90, 20), memory(95, 30, device=0), memory(150, 50), memory(220, 70)]}

    def test_a_call_and_its_kernel_are_one_execution(self):
        step = step_trace.read_step(self.trace())
        self.assertEqual((step["began"], step["step_ns"], step["threads"], step["strangers"]), (101000, 100000, 2, 1))
        self.assertEqual(step["executions"], [
            ["library_kernel", "gemm", [111000, 113000, 0], [121000, 151000, 7], "gemm"],
            ["library_kernel", "gemm", [114000, 116000, 1], [152000, 161000, 7], "gemm"],
            ["nccl_kernel", "ncclDevKernel_AllReduce", [117000, 118000, 1], [131000, 171000, 20], "ncclDevKernel_AllReduce"],
            ["synchronize", "cudaDeviceSynchronize", [161000, 175000, 0], None, ""]])

    def test_memory_is_that_of_the_gpu_while_the_step_runs(self):
        self.assertEqual(step_trace.read_step(self.trace())["memory"], [[101000, 20, 40], [151000, 50, 100]])

    def test_clocks_differ_by_no_more_than_cause_and_effect_allow(self):
        # Kernels begin 10, 38 and 14 us after their launches; the wait ends 4 us after the last of them.
        self.assertEqual(step_trace.read_step(self.trace())["clock_error_ns"], 10000)

    def test_brackets_bound_the_clocks_and_are_no_part_of_the_step(self):
        trace = self.trace()
        trace["traceEvents"] += [
            {"ph": "X", "cat": "user_annotation", "name": "foretrace 1 0", "ts": 208, "dur": 9, "tid": 1, "args": {}}]
        step = step_trace.read_step(trace)
        self.assertEqual(step["clock_error_ns"], 7000)  # begun 7 us after its call, waited for 1 us after its end
        self.assertEqual(step["executions"], step_trace.read_step(self.trace())["executions"])
        names = [one["name"] for one in step_trace.without_brackets(trace)["traceEvents"]]
        self.assertNotIn("late", names)
        self.assertIn("gemm", names)

    def test_rows_stand_behind_the_programs_and_count_executions(self):
        step = step_trace.read_step(self.trace())
        rows, (lanes, details, spans), memory = step_trace.build(10, {0: step, 1: step})
        self.assertEqual([(row["id"], row["label"], row["loops"]) for row in rows],
                         [(10, "gemm", [2]), (11, "ncclDevKernel_AllReduce", [1]), (12, "cudaDeviceSynchronize", [1])])
        self.assertTrue(all(row["captured"] for row in rows))
        self.assertEqual([lane["name"] for lane in lanes if lane["process"] == 0],
                         ["main", "default(0)", "thread 1", "stream 20"])
        self.assertEqual([span for span in spans if span[2] == 1], [[10, 0, 1, 20000, 50000, 1, 1], [10, 1, 1, 51000, 60000, 1, 1]])
        self.assertEqual(details[1]["kernel"], "gemm")
        self.assertEqual(memory[0], [0, 0, 0, 20, 40])

    def test_a_real_step_is_read_whole(self):
        trace = real_trace(TINY)
        step, sums = step_trace.read_step(trace), kineto.summarise(trace)
        work = [one for one in step["executions"] if one[3]]
        kinds = [one[0] for one in work]
        self.assertEqual((kinds.count("library_kernel"), kinds.count("memset_async")), (251, 25))
        self.assertEqual(step["strangers"], 0)
        self.assertTrue(all(one[2] for one in work))
        self.assertAlmostEqual(sum(one[3][1] - one[3][0] for one in work) / 1000, sums["gpu_busy_us"], delta=1)


class Timelines(unittest.TestCase):
    def test_a_pass_begins_together_and_waits_for_each_of_its_steps(self):
        did = []

        class Step:
            def run(self):
                did.append("step")
        passes = timing.pass_times(Step(), lambda: did.append("wait"), lambda: did.append("together"), 2, 3,
                                   lambda number: did.append(number))
        self.assertEqual(did, [turn for number in (0, 1) for turn in (number, "together", *["step", "wait"] * 3)])
        self.assertEqual([len(one) for one in passes], [3, 3])

    def test_synchronised_steps_in_a_row_are_passes(self):
        times = {"step_times_ms": [1.0, 2.0, 3.0, 4.0, 5.0]}
        self.assertEqual(step_result.passes_of(times, 2), [[1000000, 2000000], [3000000, 4000000]])
        self.assertEqual(step_result.passes_of(times, 8), [[1000000, 2000000, 3000000, 4000000, 5000000]])
        self.assertEqual(step_result.passes_of(times | {"passes_ns": [[7], [8]]}, 1), [[7], [8]])

    def test_without_foretrace_a_configuration_is_a_program_of_its_own(self):
        one = KNOWN["compile_gpt2_124m_s1024_b8_amp_model"]
        with tempfile.TemporaryDirectory() as directory:
            program, why = step_result.program_of(one, pathlib.Path(directory), "/bin/true")
            self.assertIn("compiled", why)
            other, why = step_result.program_of(KNOWN[TINY], pathlib.Path(directory), "/bin/false")
            self.assertIn("/bin/false", why)
            self.assertTrue((pathlib.Path(directory) / f"{TINY}.yaml").exists())
        self.assertNotEqual(program.document["scenario"]["program_hash"], other.document["scenario"]["program_hash"])
        document = step_result.step_timeline(other, real_line(TINY), {}, {"gpu": "NVIDIA H200"}, {"joins_no_prediction": why})
        self.assertEqual([len(one["samples_ns"]) for one in document["regions"]], [40])
        self.assertEqual(document["machine"], "1 x NVIDIA H200")

    def test_a_step_that_failed_says_where(self):
        line = real_line(TINY) | {"verdict": "out_of_memory", "ranks": {"0": {"error": {
            "phase": "timing", "type": "OutOfMemoryError", "error": "tried to allocate 9 GiB"}}}}
        document = step_result.step_timeline(step_result.own_program(KNOWN[TINY]), line, {}, {}, {})
        self.assertEqual(document["outcome"], {"kind": "failed", "explanation": [
            "process 0, timing: OutOfMemoryError: tried to allocate 9 GiB"]})
        self.assertEqual(document["regions"], [])


# What a worker would write: the timing of a real step, and its trace as it was read.
WORKER = """
import json, os, sys
word = lambda name: sys.argv[sys.argv.index(name) + 1]
out, rank, plans = word("--out"), os.environ["RANK"], json.load(open(word("--plans")))
with open(os.path.join(out, f"parts.rank{rank}.jsonl"), "a", encoding="utf-8") as file:
    put = lambda part, id, **values: print(json.dumps({"part": part, "id": id, "attempt": 0, **values}), file=file)
    put("environment", "", environment={"gpu": "NVIDIA H200", "torch": "2.11.0", "cuda": None, "nccl": "2.28.9"})
    for plan in plans:
        id = plan["configuration"]["id"]
        if os.environ.get("FAILS") == id:
            put("error", id, phase="timing", kind="error", type="RuntimeError", error="no such thing", where=[])
            continue
        timing = json.load(open(os.environ["TIMING"]))
        timing["passes_ns"] = [[8200000 + 1000 * turn] * plan["steps"] for turn in range(plan["repetitions"])]
        put("timing", id, timing=timing)
        if "--no-trace" not in sys.argv:
            put("trace", id, trace={})
            with open(os.path.join(out, f".step.{id}.rank{rank}.json"), "w") as step:
                step.write(open(os.environ["STEP"]).read())
"""


@unittest.skipUnless(FORETRACE, "FORETRACE: the command that reads scenarios")
class CommandLine(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.at = pathlib.Path(directory.name)
        (self.at / "worker.py").write_text(WORKER, encoding="utf-8")
        write_whole(self.at / "timing.json", real_line(TINY)["ranks"]["0"]["timing"])
        write_whole(self.at / "step.json", step_trace.read_step(real_trace(TINY)))
        os.environ.update(TIMING=str(self.at / "timing.json"), STEP=str(self.at / "step.json"))
        os.environ.pop("FAILS", None)
        here, workers.HERE = workers.HERE, self.at
        self.addCleanup(setattr, workers, "HERE", here)

    def train(self, *words):
        """Exit code and what was printed."""
        said, before = io.StringIO(), sys.argv
        sys.argv = ["train.py", *map(str, words), "--foretrace", FORETRACE]
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                return train.main(), said.getvalue()
        finally:
            sys.argv = before

    def test_a_measured_step_stands_beside_its_prediction(self):
        file = step_file(self.at, "tiny")
        code, said = self.train(file, "-o", self.at / "runs", "--gpus", 1, "--repetitions", 5)
        self.assertEqual(code, 0, said)
        run = self.at / "runs" / "tiny"
        document = json.loads((run / "measured.timeline.json").read_text(encoding="utf-8"))
        if importlib.util.find_spec("jsonschema"):
            import jsonschema
            jsonschema.validate(document, json.loads((ROOT / "reports/timeline.schema.json").read_text(encoding="utf-8")))
        self.assertEqual(document["versions"], {"torch": "2.11.0", "nccl": "2.28.9"})
        self.assertEqual([one["samples_ns"][:2] for one in document["regions"]], [[8200000, 8201000]] * 8)
        self.assertEqual(document["regions"][-1]["traced_ns"], json.loads((self.at / "step.json").read_text())["step_ns"])
        peak = real_line(TINY)["allocated_peak_bytes"]
        self.assertEqual(document["memory_peaks"][0][:3], [0, 0, peak])
        self.assertEqual(sorted(one.name for one in (self.at / "runs").iterdir()),
                         ["log.rank0.txt", "parts.rank0.jsonl", "results.jsonl", "summary.json", "tiny"])
        done = foretrace("simulate", file, "--machine", "h200-nvswitch-8", "-o", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = foretrace("compare", run, "--tolerance", "100%")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| step [7] |", done.stdout)
        self.assertIn(f"{peak / 1e9:.3f} GB", done.stdout)
        found = json.loads(foretrace("compare", run, "--format", "json").stdout)
        self.assertEqual([one["second"]["median_ns"] for one in found["regions"]], [8202000] * 8)
        self.assertEqual(found["memory"][0]["second_bytes"], peak)
        done = foretrace("report", run, "-o", self.at / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.at / "page.html").read_text(encoding="utf-8")
        self.assertIn("multi_tensor_apply_kernel", page)
        self.assertIn("peak memory", page)
        for command in ("assert", "order"):
            done = foretrace(command, run)
            self.assertEqual(done.returncode, 0, command + done.stderr)

    def test_ranks_that_were_all_traced_are_joined(self):
        step = json.loads((self.at / "step.json").read_text(encoding="utf-8"))
        write_whole(self.at / "step.json", step | {"work": [["gemm", 0, 10000, None], ["nccl_all_reduce", 10000, 12000, ["0", [0, 1]]]]})
        file = step_file(self.at, "two", processes=2, more="  sharding: ddp\n")
        code, said = self.train(file, "-o", self.at / "runs", "--gpus", 2, "--repetitions", 2)
        self.assertEqual(code, 0, said)
        line = json.loads((self.at / "runs/results.jsonl").read_text(encoding="utf-8"))
        for rank in "01":
            shares = line["ranks"][rank]["trace"]["shares"]
            self.assertEqual((shares["computing_us"], shares["communication_us"], shares["idle_us"]), (10, 2, 0))
        document = json.loads((self.at / "runs/two/measured.timeline.json").read_text(encoding="utf-8"))
        self.assertGreater(len(document["spans"]), 100, "the traces are in the timeline as before")

    def test_what_was_measured_is_measured_anew_when_that_is_asked_for(self):
        file, runs = step_file(self.at, "tiny"), self.at / "runs"
        self.assertEqual(self.train(file, "-o", runs, "--gpus", 1, "--repetitions", 2, "--no-trace")[0], 0)
        code, said = self.train(file, "-o", runs, "--gpus", 1)
        self.assertEqual(code, 2)
        self.assertIn("--force measures anew", said)
        self.assertEqual(self.train(file, "-o", runs, "--gpus", 1, "--repetitions", 3, "--force")[0], 0)
        document = json.loads((runs / "tiny/measured.timeline.json").read_text(encoding="utf-8"))
        self.assertEqual(len(document["regions"][0]["samples_ns"]), 3)
        self.assertEqual(len((runs / "results.jsonl").read_text(encoding="utf-8").splitlines()), 1)

    def test_the_json_of_a_step_is_enough_where_there_is_no_foretrace(self):
        json_file = self.at / "tiny.json"
        json_file.write_text(foretrace("print", step_file(self.at, "tiny"), "--format", "json").stdout, encoding="utf-8")
        self.assertEqual(self.train(json_file, "-o", self.at / "runs", "--gpus", 1, "--foretrace", "/bin/false")[0], 0)

    def test_one_that_fails_leaves_the_others_and_is_exit_code_1(self):
        os.environ["FAILS"] = "bad"
        code, said = self.train(step_file(self.at, "bad"), step_file(self.at, "good"), "-o", self.at / "runs", "--gpus", 1)
        self.assertEqual(code, 1, said)
        verdicts = {}
        for name in ("bad", "good"):
            document = json.loads((self.at / "runs" / name / "measured.timeline.json").read_text(encoding="utf-8"))
            verdicts[name] = document["outcome"]["kind"]
        self.assertEqual(verdicts, {"bad": "failed", "good": "completed"})
        self.assertIn("no such thing", foretrace("report", self.at / "runs/bad", "-o", self.at / "bad.html").stderr
                      + (self.at / "bad.html").read_text(encoding="utf-8"))

    def test_what_cannot_be_run_here_is_exit_code_2(self):
        runs, file = self.at / "runs", step_file(self.at, "tiny")
        two = step_file(self.at, "two", processes=2)
        for words, reason in (((two, "--gpus", 1), "2 processes with a GPU each, and there are 1"),
                              ((file, file, "--gpus", 1), "another file is of the name 'tiny'"),
                              ((self.at / "none.yaml", "--gpus", 1), "none.yaml"),
                              ((file, "--gpus", 1, "--set", "no=1"), "no"),
                              ((ROOT / "scenarios/examples/prefetch_two_streams.yaml", "--gpus", 1), "measure.py")):
            code, said = self.train(*words, "-o", runs)
            self.assertEqual(code, 2, said)
            self.assertRegex(said, f"^error: .*{reason}")
        self.assertFalse(runs.exists(), "nothing is begun")
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            train.parse(["it.yaml", "-o", "out", "--only", TINY])
        self.assertEqual(end.exception.code, 2)
        self.assertIn("instead of", said.getvalue())


if __name__ == "__main__":
    unittest.main()
