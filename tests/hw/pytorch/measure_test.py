"""The executor in PyTorch, as far as it goes without a GPU: programs, calls, barriers, spans, results; no PyTorch needed."""

import importlib.util
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hw" / "pytorch"))

import meeting  # noqa: E402
import result  # noqa: E402
import spans  # noqa: E402
from program import VARIABLES, Program, ProgramError, compiled, read_program  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
SCENARIO = """# A loop over two streams.
schema_version: 1
name: two_streams
processes: 2
streams: {s: {count: 2}}
events: {ready: {count: 2}}
buffers: {x: {size: 4MiB, count: 2, memory: device}, h: {size: 4MiB, memory: pinned}}
threads:
  main:
    - region:
        name: loop
        per: 6
        ops:
          - repeat:
              index: i
              times: 3
              ops:
                - repeat:
                    index: j
                    times: 2
                    ops:
                      - memcpy_async: {stream: s(j), src: h, dst: x(j), size: 1MiB * (i + 1)}
                      - spin: {stream: s((i + j) % 2), duration: 10us, blocks: 4}
                      - event_record: {event: ready(j), stream: s(j)}
          - device_synchronize: {}
"""


def program_of(text):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "it.yaml"
        file.write_text(text, encoding="utf-8")
        return read_program(file, FORETRACE)


class Hostile(unittest.TestCase):
    """What 'foretrace print' would not write."""

    def test_values_that_are_none_are_program_errors(self):
        for words in ([1, 0, "//"], [1, 0, "%"], ["+"], ["+", 1, 1], ["if", 1, 2, 3], [1, "+"], [1, 2], [], ["if"], ["neg"], [10, 10, "**", 10, "**"],
                      [2, -1, "**"], [9, 99999999999, "**"], ["i7"], [2**62, 4, "*"], ["os"], [None], "process", None):
            with self.assertRaises(ProgramError, msg=str(words)):
                compiled({"postfix": words})([0, 1])
        for value in ({"first": "x", "index": 0}, {"first": 1}, {}):
            with self.assertRaises(ProgramError, msg=str(value)):
                compiled(value)([0])

    def test_a_program_sets_the_variables_that_a_scenario_may_set_and_no_other(self):
        rules = (ROOT / "scenarios/program/environment_rules.h").read_text(encoding="utf-8")
        self.assertEqual(VARIABLES, set(re.findall(r'Rule\{"([A-Z0-9_]+)"', rules)))
        good = {"kind": "program", "schema_version": 1, "scenario": {"name": "a", "program_hash": "b", "file": "c"}, "ops": [],
                "processes": 1, "nodes": 1, "devices": 1, "warmup": 1, "streams": [], "events": [], "buffers": [],
                "communicators": [], "comms": [], "signals": [], "graphs": [], "barriers": [], "threads": []}
        Program(good | {"environment": {"NCCL_PROTO": "LL", "NCCL_NET_PLUGIN": "none"}})
        for name in ("PYTHONPATH", "LD_PRELOAD", "NCCL_NET_PLUGIN", "PATH", "CUDA_INJECTION64_PATH"):
            with self.assertRaises(ProgramError, msg=name):
                Program(good | {"environment": {name: "x"}})
        with self.assertRaises(ProgramError):
            Program({"kind": "program", "schema_version": 1})


class Values(unittest.TestCase):
    def test_expressions_round_down_as_the_scenario_does(self):
        for words, expected in ((["process", 1, "-", 4, "%"], 3), (["process", 1, "-", 2, "//"], -1), ([2, "i1", "**"], 32),
                                (["i2", 3, "<", 10, 20, "if"], 20), (["i1", "neg", 7, "max"], 7), (["i1", 5, "=="], 1)):
            self.assertEqual(compiled({"postfix": words})([0, 5, 9]), expected, words)

    def test_a_member_of_a_family_is_its_first_and_an_index(self):
        self.assertEqual(compiled({"first": 4, "index": {"postfix": ["i1", 2, "%"]}})([0, 3]), 5)
        self.assertEqual(compiled(7)([0]), 7)

    def test_hundreds_of_terms_are_no_more_than_python_can_nest(self):
        words = [1] + ["i1", "+"] * 5000
        self.assertEqual(compiled({"postfix": words})([0, 2]), 10001)

    def test_a_word_that_is_none_is_named(self):
        with self.assertRaisesRegex(ProgramError, "__import__"):
            compiled({"postfix": ["__import__"]})
        for word in (10**30, True, 1.5, None, [], {}, "i0", "i" + "9" * 5000):
            with self.assertRaises(ProgramError):
                compiled({"postfix": [word]})


@unittest.skipUnless(FORETRACE, "FORETRACE: the command that reads scenarios")
class Programs(unittest.TestCase):
    def test_loops_are_gone_around_with_their_indices(self):
        program = program_of(SCENARIO)
        region, = program.calls(0, 1)
        self.assertEqual([one.kind for one in region.inside],
                         ["memcpy_async", "spin", "event_record"] * 6 + ["device_synchronize"])
        copies = [one for one in region.inside if one.kind == "memcpy_async"]
        self.assertEqual([one.instance for one in copies], [0, 1, 2, 3, 4, 5])
        self.assertEqual([one.size >> 20 for one in copies], [1, 1, 2, 2, 3, 3])
        self.assertEqual([program.streams[one.stream]["name"] for one in copies], ["s(0)", "s(1)"] * 3)
        self.assertEqual([program.buffers[one.dst]["name"] for one in copies], ["x(0)", "x(1)"] * 3)
        spins = [one for one in region.inside if one.kind == "spin"]
        self.assertEqual([program.streams[one.stream]["name"] for one in spins[:4]], ["s(0)", "s(1)", "s(1)", "s(0)"])
        self.assertEqual((spins[0].duration, spins[0].blocks), (10_000_000, 4))

    def test_every_shipped_scenario_of_a_few_processes_is_read(self):
        files = sorted((ROOT / "scenarios").glob("*/*.yaml"))
        read = 0
        for file in files[::7]:
            if file.parent.name in ("architectures", "include") or "schema_version" not in file.read_text(encoding="utf-8"):
                continue
            program = read_program(file, FORETRACE)
            for process in range(min(program.processes, 2)):
                for thread in program.threads_of(process):
                    self.assertGreaterEqual(len(program.calls(thread, process)), 0, file)
            read += 1
        self.assertGreater(read, 15)

    def test_loops_without_calls_take_no_time_and_endless_ones_are_refused(self):
        head = "schema_version: 1\nname: turns\nthreads:\n  main:\n"
        empty = program_of(head + "    - repeat: {times: 1000000000000, ops: []}\n")
        self.assertEqual(empty.calls(0, 0), [])
        nothing = program_of("schema_version: 1\nname: nothing\nthreads: {main: []}\n")
        self.assertEqual((nothing.rows, nothing.calls(0, 0)), ([], []))
        endless = program_of(head + "    - repeat: {times: 1000000000000, ops: [host_compute: {duration: 0us}]}\n")
        with unittest.mock.patch("program.MOST_CALLS", 20_000):  # two million take seconds to list
            with self.assertRaisesRegex(ProgramError, "it.yaml:5: .*more than 20000 calls"):
                endless.calls(0, 0)

    def test_memory_is_filled_with_the_type_that_is_computed_on_it(self):
        program = program_of(SCENARIO.replace("spin: {stream: s((i + j) % 2), duration: 10us, blocks: 4}",
                                              "elementwise: {stream: s(j), dst: x(j), type: bfloat16}"))
        self.assertEqual(program.buffer_types(), {0: "bfloat16", 1: "bfloat16"})

    def test_an_error_of_the_scenario_is_the_readers_own(self):
        with self.assertRaisesRegex(ProgramError, "(?s)it.yaml:23.*did you mean 'spin'"):
            program_of(SCENARIO.replace("- spin:", "- spim:"))

    def test_a_result_is_a_timeline_that_foretrace_reads(self):
        program = program_of(SCENARIO)
        samples = {0: [{"0 0": 1000}, {"0 0": 1200}], 1: [{"0 0": 900}, {"0 0": 1100}]}
        rows = result.regions(program, samples, {0: {"0 0": 2000}})
        self.assertEqual([(row["name"], row["per"], row["samples_ns"]) for row in rows],
                         [("loop", 6, [1000, 1200]), ("loop", 6, [900, 1100])])
        copy = next(op["id"] for op in program.walk() if op["kind"] == "memcpy_async")
        one = {"process": 0, "began": 5000, "calls": [(5000, 7000, copy, 0, "main")],
               "work": [(6000, 9000, copy, 0, ""), (9000, 9500, copy, 0, "copy_kernel")], "streams": {f"{copy} 0": 2}}
        document = result.timeline(program, "1 x GPU", {"torch": "2"}, rows=rows, built=spans.build(program, [one]))
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "run" / "measured.timeline.json"
            result.write_whole(path, document)
            done = subprocess.run([FORETRACE, "export", str(path), "--to", "csv"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if "memcpy_async" in line]
        self.assertEqual(len(lines), 3, done.stdout)
        self.assertEqual([one.get("kernel") for one in document["details"]], [None, "copy_kernel"])


class Spans(unittest.TestCase):
    def trace(self):
        event = lambda cat, name, ts, dur, tid=1, **args: {
            "ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}
        return {"baseTimeNanoseconds": 1000, "traceEvents": [
            event("user_annotation", "foretrace 3 1", 10, 5), event("cuda_runtime", "cudaLaunchKernel", 12, 2, correlation=7),
            event("kernel", "spin", 20, 30, tid=99, correlation=7), event("kernel", "other", 60, 1, tid=99, correlation=8),
            event("user_annotation", "foretrace 4 0", 16, 5, tid=2),
            event("cuda_runtime", "cudaLaunchKernel", 17, 1, tid=2, correlation=9),
            event("gpu_memcpy", "Memcpy HtoD", 70, 4, tid=98, correlation=9),
            event("user_annotation", "ProfilerStep#1", 0, 100)]}

    def test_device_work_belongs_to_the_call_around_its_launch(self):
        work, strangers = spans.device_work(self.trace())
        self.assertEqual(work, [(21000, 51000, 3, 1, "spin"), (71000, 75000, 4, 0, "")])
        self.assertEqual(strangers, 1)

    def test_annotations_come_with_their_threads(self):
        self.assertEqual(spans.annotations(self.trace()), [(11000, 16000, 3, 1, 1), (17000, 22000, 4, 0, 2)])

    def test_clocks_differ_by_no_more_than_the_tightest_bracket(self):
        self.assertEqual(spans.clock_error([(0, 4000, 9000, 10000), (0, 2000, 7000, 10000)]), 3000)
        self.assertEqual(spans.clock_error([]), 0)


class Meetings(unittest.TestCase):
    def test_threads_leave_a_barrier_when_all_have_come(self):
        barriers = meeting.Barriers(f"test-{os.getpid()}", [2, 3])
        barriers.unlink()
        order = []

        def party(number):
            for turn in range(3):
                order.append((turn, number))
                barriers.arrive_and_wait(1, number)
        workers = [threading.Thread(target=party, args=(number,)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
            self.assertFalse(worker.is_alive())
        self.assertEqual([turn for turn, _ in order], sorted(turn for turn, _ in order))

    def test_a_stored_file_is_read_whole_whatever_its_size(self):
        import mmap
        size = 3 * 4096 + 100
        file, into = meeting.stored_file(size), mmap.mmap(-1, 4 * 4096)
        meeting.read_whole(file, into, size)
        os.close(file)
        self.assertNotEqual(into[size - 100:size], bytes(100))


class Meetings(unittest.TestCase):
    def start(self, code, **variables):
        words = f"import sys; sys.path.insert(0, {str(ROOT / 'hw/pytorch')!r}); " + code
        return subprocess.run([sys.executable, "-c", words, "it.yaml", "-o", "out"], env=dict(os.environ, **variables), capture_output=True, text=True,
                              timeout=100)

    def test_how_ranks_find_each_other_is_torchruns_to_say(self):
        for variables in ({"RANK": "x"}, {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "port"}):
            done = self.start("import measure; sys.exit(measure.main())", **variables)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn("torchrun's to set", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_a_rank_that_does_not_come_is_one_line(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        done = self.start("import meeting; meeting.MEETING_S = 1; import measure; sys.exit(measure.main())", RANK="0", WORLD_SIZE="2",
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("error: rank 0 of 2 has met nobody at 127.0.0.1:", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_a_rank_that_froze_is_named(self):
        done = self.start("import meeting, torch.distributed as dist; ranks = meeting.Ranks(); ranks.size = 3; "
                          "ranks.store = dist.TCPStore('127.0.0.1', 0, 1, True); ranks.store.set('x/2', '');\n"
                          "try: ranks.gather('x', seconds=0.5)\n"
                          "except meeting.NotMet as error: print(error)")
        self.assertEqual(done.stdout, "rank 1 did not come within 0.5 s\n", done.stderr)


class CommandLine(unittest.TestCase):
    def run_it(self, *words):
        return subprocess.run([sys.executable, str(ROOT / "hw/pytorch/measure.py"), *words], capture_output=True, text=True)

    def test_a_program_of_other_processes_is_refused_before_pytorch_is_needed(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "p.json"
            rest = {key: [] for key in ("streams", "events", "buffers", "communicators", "comms", "signals", "graphs",
                                        "barriers", "threads", "ops")}
            document = {"schema_version": 1, "kind": "program", "scenario": {"name": "x", "file": "x", "program_hash": "0"},
                        "nodes": 1, "processes": 4, "devices": 1, "warmup": 1, "environment": {}, **rest}
            file.write_text(json.dumps(document), encoding="utf-8")
            done = self.run_it(str(file), "-o", directory)
            self.assertEqual(done.returncode, 2)
            self.assertIn("torchrun --nproc-per-node 4", done.stderr)
            document["kind"] = "timeline"
            file.write_text(json.dumps(document), encoding="utf-8")
            self.assertIn("foretrace print FILE --format json", self.run_it(str(file), "-o", directory).stderr)

    def test_a_file_that_is_no_program_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "p.json"
            for text in ("", "[1]", "{", '{"kind": "program", "schema_version": 1}'):
                file.write_text(text, encoding="utf-8")
                done = self.run_it(str(file), "-o", directory)
                self.assertEqual(done.returncode, 2, text)
                self.assertRegex(done.stderr, "^error: .*p.json|^error: no program", text)
                self.assertNotIn("Traceback", done.stderr)
            for name in ("../x", "/tmp/x", "..", 5):
                document = {"schema_version": 1, "kind": "program",
                            "scenario": {"name": name, "file": "x", "program_hash": "0"}, "ops": [], "environment": {}}
                file.write_text(json.dumps(document), encoding="utf-8")
                done = self.run_it(str(file), "-o", directory)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("is no name", done.stderr)
            self.assertIn("--set is for scenarios", self.run_it(str(file), "-o", directory, "--set", "a=1").stderr)
            missing = self.run_it(str(file) + ".json", "-o", directory)
            self.assertEqual(missing.returncode, 2)
            self.assertIn("No such file", missing.stderr)

    def test_a_command_that_is_no_foretrace_is_wrong_input(self):
        with tempfile.TemporaryDirectory() as directory:
            for command in ("/nonexistent", directory, "/bin/true", "/bin/false"):
                done = self.run_it("it.yaml", "-o", directory, "--foretrace", command)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertRegex(done.stderr, r"^error: \S")


if __name__ == "__main__":
    unittest.main()
