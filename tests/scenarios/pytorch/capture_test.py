"""The capture's parts that need no PyTorch: from calls and operations to a record."""

import contextlib
import gzip
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scenarios" / "pytorch"))

from foretrace import record, reference_loop, scenario, steps  # noqa: E402
from foretrace.command import main, parse  # noqa: E402
from foretrace.environment import rank_environment  # noqa: E402
from foretrace.emulation import NONE, Call  # noqa: E402
from foretrace.operations import Operation, arguments, tensor  # noqa: E402
from foretrace.recorder import peaks_before  # noqa: E402


class Host(unittest.TestCase):
    def test_a_hosts_file_has_the_loops_in_milliseconds(self):
        text = reference_loop.host_text({"python_loop_ns": 25_500_000, "torch_loop_ns": 17_200_400})
        self.assertTrue(text.startswith("foretrace_host: 1\n"))
        self.assertIn("python_loop: 25.500ms\ntorch_loop: 17.200ms\n", text)

    def test_the_command_writes_to_a_file_of_its_own(self):
        self.assertEqual(parse(["host"]).output, "host.yaml")
        self.assertEqual(parse(["host", "-o", "there.yaml"]).output, "there.yaml")


class Library:
    """Stands for the emulated GPU's library: texts, names of kernels and of threads by their index."""

    def __init__(self, texts, threads=("main",), names=("k",)):
        self.texts, self.threads, self.names = texts, threads, names

    def text(self, i):
        return self.texts[i]

    def thread_name(self, i):
        return self.threads[i]

    def kernel_name(self, i):
        return self.names[i]


LAUNCH, MALLOC, RECORD, SYNC = '"k":"launch","n":0,"g3":[1,1,1],"b3":[32,1,1],"sm":0', '"k":"malloc","n":8,"a":1', '"k":"record","e":5', '"k":"sync","w":"stream"'


def call(text, t, clock=0, thread=0, cpu=None, stream=0, graph=NONE):
    return Call(t, t if cpu is None else cpu, clock, text, thread, 0 if text == 0 else NONE, stream, NONE, graph)


class HostTimes(unittest.TestCase):
    def setUp(self):
        self.loaded = Library([LAUNCH, MALLOC, '"k":"record","e":6', SYNC])

    def test_steps_that_differ_say_that_the_machine_was_busy(self):
        from foretrace.finish import unsteady
        self.assertEqual(unsteady([37.6e6, 13.5e6, 14.3e6, 11.7e6, 13.2e6, 15.5e6]), "")
        self.assertEqual(unsteady([20e6, 90e6]), "")
        self.assertIn("33.2 to 158.5 ms", unsteady([151.2e6, 143.6e6, 158.5e6, 33.2e6, 181.8e6, 57.5e6]))

    def test_a_gap_is_the_mean_of_the_plain_steps_time_on_a_processor(self):
        profiled = ([call(0, 1000), call(0, 5000)], 9000, 9000)
        plain = [([call(0, 100, cpu=50), call(0, 900, cpu=250)], 1000, 300), ([call(0, 100, cpu=70), call(0, 300, cpu=290)], 400, 310)]
        times, end, steps_alike = record.host_times(self.loaded, profiled, plain)
        self.assertEqual((times, end, steps_alike), ([60, 270], 305, 2))

    def test_a_wait_in_every_step_is_time(self):
        wait = 2 * record.WAITS_NS
        profiled = ([call(0, 10)], 20, 20)
        plain = [([call(0, wait + n, cpu=5)], wait + n + 10, 15) for n in (0, 400)]
        times, end, _ = record.host_times(self.loaded, profiled, plain)
        self.assertEqual((times, end), ([wait], wait + 10))

    def test_allocations_may_differ_between_steps_and_lie_where_the_profiled_step_has_them(self):
        profiled = ([call(0, 100), call(1, 150), call(0, 200)], 200, 200)
        plain = [([call(0, 10), call(0, 30)], 30, 30)]
        times, end, steps_alike = record.host_times(self.loaded, profiled, plain)
        self.assertEqual((times, end, steps_alike), ([10, 20, 30], 30, 1))

    def test_of_steps_that_did_other_work_only_the_length_counts(self):
        profiled = ([call(0, 100)], 200, 200)
        times, end, steps_alike = record.host_times(self.loaded, profiled, [([call(0, 1), call(0, 2)], 90, 50)])
        self.assertEqual((times, end, steps_alike), ([25], 50, 0))

    def test_a_step_with_work_of_its_own_is_left_out(self):
        profiled = ([call(0, 100)], 200, 200)
        plain = [([call(0, 10)], 20, 20), ([call(0, 10)], 20, 20), ([call(0, 500)], 900, 900)]
        self.assertEqual(record.host_times(self.loaded, profiled, plain), ([10], 20, 2))


class Join(unittest.TestCase):
    def lines(self, calls, operations, threads=("main",), marks=()):
        library = Library([LAUNCH, MALLOC, RECORD, SYNC], threads)
        writer = record.Writer(library, {("stream", 0): {"k": "stream", "i": 0, "priority": 0}})
        record.join(writer, calls, [c.t for c in calls], operations, record.Threads(library, calls), marks)
        return [json.loads(line) for line in writer.lines]

    def test_a_call_belongs_to_the_innermost_operation_of_its_thread(self):
        outer = Operation(100, 200, 1, "aten::linear", [], "forward", "model.up", 0)
        inner = Operation(110, 150, 1, "aten::addmm", [3], "forward", "model.up", 1)
        lines = self.lines([call(0, 1, clock=120), call(0, 2, clock=180), call(0, 3, clock=300)], [outer, inner])
        launches = [line for line in lines if line["k"] == "launch"]
        self.assertEqual([line.get("op") for line in launches], [1, 0, None])
        ops = [line for line in lines if line["k"] == "op"]
        self.assertEqual((ops[1]["p"], ops[1]["ph"], ops[1]["m"]), (0, "forward", 0))

    def test_each_declaration_stands_once_before_its_first_use(self):
        ops = [Operation(100 + i, 101 + i, 1, "aten::add", [1], "forward", None, 0) for i in range(0, 30, 10)]
        lines = self.lines([call(0, i, clock=100 + 10 * i) for i in range(3)], ops)
        kinds = [line["k"] for line in lines]
        self.assertEqual(kinds, ["sig", "op", "name", "stream", "launch", "op", "launch", "op", "launch"])

    def test_threads_are_told_apart_by_whose_operations_they_fall_into(self):
        main = Operation(100, 140, 1, "aten::mm", [], "forward", None, 0)
        backward = Operation(110, 190, 2, "MmBackward0", [], "backward", None, 0)
        lines = self.lines([call(0, 1, clock=105), call(0, 2, clock=120, thread=1), call(0, 3, clock=150, thread=1)], [main, backward],
                           ("main", "pt_autograd_0"))
        self.assertEqual([(line.get("th", 0), line["op"]) for line in lines if line["k"] == "launch"], [(0, 0), (1, 1), (1, 1)])

    def test_a_thread_whose_first_operation_began_before_the_profiler_has_a_number(self):
        inner = Operation(110, 150, 2, "aten::addmm", [], "backward", None, 1)
        lines = self.lines([call(0, 1, clock=120)], [Operation(100, 200, 1, "aten::linear", [], "forward", None, 0), inner])
        self.assertEqual([line.get("th", 0) for line in lines if line["k"] == "op"], [0, 1])

    def test_regions_within_the_step_stand_between_their_calls(self):
        lines = self.lines([call(0, 1, clock=1), call(0, 5, clock=2)], [], marks=[(1, 4, "data", True), (2, 6, "data", False)])
        self.assertEqual([line["k"] for line in lines if line["k"] in ("launch", "begin", "end")], ["launch", "begin", "launch", "end"])

    def test_calls_of_a_thread_that_launches_nothing_are_left_out(self):
        library = Library([LAUNCH, MALLOC], ("main", "pin_memory"))
        calls = [call(0, 1), call(1, 2, thread=1)]
        threads = record.Threads(library, calls)
        self.assertEqual((threads.keep(calls), threads.left_out), (calls[:1], {1: "pin_memory"}))


class Reads(unittest.TestCase):
    def unsure(self, read, *operations):
        return len(record.unsure([(read, list(operations))]))

    def test_integers_and_sizes_that_data_decide_are_computed_and_losses_are_not(self):
        item = Operation(0, 1, 1, "aten::_local_scalar_dense", [{"d": "i64", "s": []}], "other", "model", 1)
        loss = item._replace(arguments=[{"d": "f32", "s": []}])
        self.assertEqual([self.unsure({"n": 8}, item), self.unsure({"n": 4}, loss)], [1, 0])
        self.assertEqual(self.unsure({"n": 4}, item._replace(name="aten::nonzero", arguments=[{"d": "bool", "s": [4]}])), 1)

    def test_a_comparison_that_ends_a_loop_is_computed_and_a_models_look_at_its_mask_is_not(self):
        item = Operation(0, 1, 1, "aten::is_nonzero", [{"d": "bool", "s": []}], "other", None, 0)
        read = {"n": 1, "after": "CompareEqFunctor"}
        self.assertEqual([self.unsure(read, item), self.unsure(read, item._replace(module="model"))], [1, 0])


class Graphs(unittest.TestCase):
    def test_a_graph_brings_the_calls_that_were_captured_into_it(self):
        texts = [LAUNCH, '"k":"graph","what":"begin","g":7', '"k":"graph_launch","g":7', '"k":"graph_launch","g":8']
        before = [call(1, 0), call(0, 1, graph=7), call(0, 2, graph=8), call(0, 3)]
        body = record.graph_bodies(Library(texts), before, [call(2, 9)])
        self.assertEqual(body, before[:2])


class Meta:
    def __init__(self, sizes, strides, dtype="torch.bfloat16", device="cuda"):
        self.sizes, self.strides, self.dtype = sizes, strides, dtype
        self.device = type("Device", (), {"type": device})


class Arguments(unittest.TestCase):
    def test_a_tensor_has_strides_only_where_it_is_not_contiguous_and_a_device_only_where_it_is_not_the_gpu(self):
        self.assertEqual(tensor(Meta([2, 3], [3, 1])), {"d": "bf16", "s": [2, 3]})
        self.assertEqual(tensor(Meta([2, 3], [1, 2], "torch.int64", "cpu")), {"d": "i64", "s": [2, 3], "st": [1, 2], "dev": "cpu"})

    def test_lists_of_integers_come_from_the_concrete_ones(self):
        self.assertEqual(arguments([Meta([4], [1]), None, 1.5, [Meta([1], [1])], float("inf")], [None, [1, -1], None]),
                         [{"d": "bf16", "s": [4]}, [1, -1], 1.5, [{"d": "bf16", "s": [1]}], "inf"])


class Listener:
    def __init__(self):
        self.heard = []

    def begin(self, name):
        self.heard.append(f"begin {name}")

    def end(self, name):
        self.heard.append(f"end {name}")

    def mark(self, name, begins):
        self.heard.append(f"mark {name} {begins}")

    def abandon(self):
        self.heard.append("abandon")


class StepsOfAProgram(unittest.TestCase):
    def test_the_first_region_that_begins_is_the_step_and_others_are_marks(self):
        listener = Listener()
        s = steps.Steps(listener)
        for _ in range(2):
            with s.in_region("step"), s.in_region("data"):
                pass
        self.assertEqual(listener.heard, ["abandon"] + ["begin step", "mark data True", "mark data False", "end step"] * 2)

    def test_without_a_region_a_step_ends_with_the_first_optimizers_step(self):
        listener = Listener()
        s = steps.Steps(listener)
        one, two = object(), object()
        for optimizer in (one, two, one):
            s._after_optimizer(optimizer)
        self.assertEqual(listener.heard, ["end step", "begin step", "end step", "begin step"])


class Files(unittest.TestCase):
    def test_a_scenario_says_which_ranks_a_record_stands_for(self):
        with tempfile.TemporaryDirectory() as folder:
            text = scenario.write_scenario(folder, "a step", 8, [0, 6]).read_text()
            self.assertIn("name: a_step\nprocesses: 8\n", text)  # a scenario's name is a word
            self.assertIn("{file: rank0.calls.jsonl.gz, rank: 0, stands_for: [0, 1, 2, 3, 4, 5]}", text)
            self.assertIn("{file: rank6.calls.jsonl.gz, rank: 6, stands_for: [6, 7]}", text)

    def test_the_same_lines_give_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("a.gz", "b.gz")]
            for path in paths:
                record.write(path, ['{"k":"x"}'])
            self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())
            self.assertEqual(gzip.open(paths[0]).read(), b'{"k":"x"}\n')


class Command(unittest.TestCase):
    def test_what_stands_behind_the_script_is_the_scripts(self):
        arguments = parse(["capture", "-o", "out", "--world-size", "16", "--ranks", "8,0", "--", "train.py", "--step", "9"])
        self.assertEqual((arguments.script, arguments.arguments, arguments.ranks), ("train.py", ["--step", "9"], [0, 8]))

    def test_a_rank_that_the_world_has_not_is_refused(self):
        with self.assertRaises(SystemExit) as refused:
            parse(["capture", "-o", "out", "--world-size", "2", "--ranks", "2", "train.py"])
        self.assertEqual(refused.exception.code, 2)

    def test_numbers_that_measure_nothing_are_refused(self):
        for words in (["measure", "--gpus", "0"], ["measure", "--steps", "0"], ["measure", "--timeout", "nan"], ["measure", "--timeout", "-1"],
                      ["capture", "--memory", "9" * 24]):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as refused:
                parse([*words, "-o", "out", "train.py"])
            self.assertEqual(refused.exception.code, 2)

    def test_a_folder_that_cannot_be_written_is_one_line_and_4(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            script = pathlib.Path(folder) / "train.py"
            script.write_text("")
            self.assertEqual(main(["measure", "-o", str(script), str(script)]), 4)
            self.assertEqual(main(["measure", "-o", folder + "/out", folder + "/none.py"]), 2)
        self.assertEqual(len(said.getvalue().splitlines()), 2, said.getvalue())

    def test_a_rank_sees_what_torchrun_would_set(self):
        environment = rank_environment({}, 9, 16, 8)
        self.assertEqual([environment[k] for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")], ["9", "1", "16", "8", "1"])
        self.assertEqual(environment["OMP_NUM_THREADS"], "1")
        self.assertEqual(rank_environment({"OMP_NUM_THREADS": "4"}, 0, 2, 8)["OMP_NUM_THREADS"], "4")
        self.assertNotIn("OMP_NUM_THREADS", rank_environment({}, 0, 1, 8))

    def test_the_first_steps_peak_outlives_a_reset_of_the_allocators_peaks(self):
        now = {"allocated_bytes.all.peak": 70, "reserved_bytes.all.peak": 120}
        earlier = {"peak_before": [100, 110], "allocated": [50, 80, 50], "reserved": [110, 115, 110]}
        self.assertEqual(peaks_before(now, []), [70, 120])
        self.assertEqual(peaks_before(now, [earlier]), [100, 120])
        self.assertEqual(peaks_before(now, [dict(earlier, allocated=[50, 130, 50])]), [130, 120])


if __name__ == "__main__":
    unittest.main()
