"""The serving engine: its random numbers, traffic and scheduler without PyTorch; a tiny model on the CPU where there is PyTorch."""

import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hw" / "serving" / "engine"))
sys.path.insert(0, str(ROOT / "hw" / "laboratory" / "serving"))

import random_numbers  # noqa: E402
import results  # noqa: E402
import scenario  # noqa: E402
import table  # noqa: E402
import traffic  # noqa: E402
from extents import Extents  # noqa: E402
from scheduler import Request, Scheduler  # noqa: E402

ENGINE = {"max_batched_tokens": 64, "max_requests": 4, "chunked_prefill": True, "block": 16}


class RandomNumbers(unittest.TestCase):
    def test_split_mix_of_a_known_state_is_the_published_one(self):
        numbers = random_numbers.SplitMix64(0)
        numbers.state = 0
        self.assertEqual([numbers.next() for _ in range(2)], [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4])

    def test_logarithms_have_32_binary_places(self):
        self.assertEqual(random_numbers.log2(1), 0)
        self.assertEqual(random_numbers.log2(1 << 40), 40 << 32)
        self.assertAlmostEqual(random_numbers.log2(10) / 2**32, 3.321928094887362, places=9)

    def test_exponentials_and_normals_have_their_moments(self):
        numbers = random_numbers.SplitMix64(1)
        drawn = [numbers.exponential() / 2**32 for _ in range(20000)]
        self.assertAlmostEqual(sum(drawn) / len(drawn), 1, delta=0.03)
        drawn = [numbers.normal() / 2**32 for _ in range(20000)]
        self.assertAlmostEqual(sum(x * x for x in drawn) / len(drawn), 1, delta=0.03)


class Traffic(unittest.TestCase):
    def test_the_vectors_of_the_page(self):
        """The same numbers stand in the C++ test and in scenarios/serving.md."""
        law = {"mean": 512, "spread_ppm": 300000}
        drawn = traffic.requests({"arrivals": "poisson", "mean_gap_ns": 100000000, "prompt": law, "output": law, "requests": 3,
                                  "seed": 1})
        self.assertEqual([(a.at_ns, a.prompt, a.output) for a in drawn], VECTOR)

    def test_gamma_of_shape_one_is_poisson(self):
        law = {"mean": 5, "spread_ppm": 0}
        common = {"mean_gap_ns": 10**9, "prompt": law, "output": law, "requests": 9, "seed": 2}
        self.assertEqual(traffic.requests({"arrivals": "gamma", "shape_halves": 2} | common),
                         traffic.requests({"arrivals": "poisson"} | common))


VECTOR = [(150726472, 708, 349), (205194296, 622, 464), (219785065, 458, 357)]


class Scheduling(unittest.TestCase):
    def test_a_long_prompt_comes_in_chunks_beside_a_request_that_decodes(self):
        scheduler = Scheduler(ENGINE, 100)
        scheduler.add(Request(0, 0, 10, 5))
        self.assertEqual([n for _, n in scheduler.schedule()], [10])
        scheduler.finish([(scheduler.running[0], 10)], 1)
        scheduler.add(Request(1, 0, 100, 5))
        step = scheduler.schedule()
        self.assertEqual([n for _, n in step], [1, 63])
        scheduler.finish(step, 2)
        self.assertEqual(scheduler.running[1].generated, 0)
        self.assertEqual([n for _, n in scheduler.schedule()], [1, 37])

    def test_the_request_admitted_last_is_preempted_and_computed_again(self):
        scheduler = Scheduler(ENGINE, 4)  # 64 tokens
        for number in range(2):
            scheduler.add(Request(number, 0, 31, 20))
        scheduler.finish(scheduler.schedule(), 1)
        scheduler.finish(scheduler.schedule(), 2)  # 32 each: all blocks are full
        step = scheduler.schedule()
        self.assertEqual([(r.id, n) for r, n in step], [(0, 1)])
        self.assertEqual(scheduler.waiting[0].missing, 33)
        self.assertEqual(scheduler.preemptions, 1)

    def test_every_request_ends_and_gives_its_blocks_back(self):
        scheduler = Scheduler(ENGINE, 12)
        for number in range(9):
            scheduler.add(Request(number, 0, 20 + 7 * number, 3 + 9 * number))
        steps = 0
        while scheduler.busy():
            step = scheduler.schedule()
            self.assertLessEqual(sum(n for _, n in step), 64)
            scheduler.finish(step, steps := steps + 1)
        self.assertEqual(scheduler.free, 12)

    def test_a_request_larger_than_the_cache_is_refused(self):
        with self.assertRaisesRegex(ValueError, "more than the 4 blocks"):
            Scheduler(ENGINE, 4).add(Request(0, 0, 60, 5))

    def test_extents_join_what_was_given_back(self):
        extents = Extents(10)
        self.assertEqual([extents.take("a", 4), extents.take("b", 4), extents.take("c", 4)], [0, 4, None])
        extents.give("a")
        extents.give("b")
        self.assertEqual(extents.free, [(0, 10)])


class Files(unittest.TestCase):
    def test_every_shipped_file_is_read(self):
        files = sorted((ROOT / "hw" / "serving" / "traffic").glob("*.yaml"))
        self.assertEqual(len(files), 54)
        for path in files:
            read = scenario.read(path)
            arrivals = traffic.requests(read["traffic"], path.parent)
            self.assertLessEqual(max(a.prompt + a.output for a in arrivals), read["engine"]["max_length"])

    def test_rates_and_percentages(self):
        self.assertEqual(scenario.gap_ns("4/s"), 250000000)
        self.assertEqual(scenario.gap_ns("30/min"), 2000000000)
        self.assertEqual(scenario.ppm("12.5%"), 125000)
        with self.assertRaises(scenario.Mistake):
            scenario.gap_ns("0/s")

    def test_an_unknown_key_is_refused(self):
        with self.assertRaisesRegex(scenario.Mistake, "unknown key 'bloc'"):
            scenario.known({"bloc": 1}, scenario.ENGINE, "engine")

    def test_what_foretrace_refuses_is_not_read_as_something_else(self):
        text = ("schema_version: 1\nname: chat\nserving:\n  model: llama3-8b\n  engine: {kind: vllm}\n"
                "  traffic: {arrivals: poisson, rate: 4/s, prompt: {mean: 9}, output: {mean: 4}, requests: 6}\n")
        for old, new, words in (
                ("schema_version: 1", "schema_version: 7", "schema_version: 7, and 1 is read"),
                ("schema_version: 1\n", "", "no 'schema_version'"),
                ("name: chat", "name: chat\nservign: {a: 1}", "unknown key 'servign'"),
                ("name: chat", "name: chat\nname: other", "line 3: 'name' is there twice"),
                ("requests: 6", "requests: 6, requests: 3", "line 6: 'requests' is there twice"),
                ("requests: 6", "requests: 6, concurrency: 3", "traffic of poisson arrivals: unknown key 'concurrency'"),
                ("poisson, rate: 4/s", "closed, concurrency: 2, rate: 4/s", "traffic of closed arrivals: unknown key 'rate'"),
                ("requests: 6", "requests: 010", "whole number from 1"),
                ("requests: 6", "requests: \u0666", "whole number from 1"),
                ("requests: 6", "requests: 6, seed: abc", "'seed' is a whole number"),
                ("requests: 6}", "requests: 6}}", "a brace more ends than begins"),
                ("requests: 6", "requests: [6]", "a value is a word"),
                ("kind: vllm", "kind: foo", "none of foretrace, vllm"),
                ("kind: vllm", "kind: vllm, memory: 200%", "'memory' is more than 0%"),
                ("kind: vllm", "kind: vllm, cuda_graphs: 3", "'cuda_graphs' is true or false"),
                ("  engine", "  parallel: {tensr: 2}\n  engine", "unknown key 'tensr'"),
                ("  engine", "  precision: int3\n  engine", "'int3' is none of"),
                ("  engine", "\tengine", "line 5: indentation is by spaces"),
                ("  engine", "   engine", "line 5: 'engine' stands under no map of this indentation"),
                ("llama3-8b", "../architectures/llama3-8b", "is no word"),
                ("name: chat", "name: 'cha # t'", "is no word"),
                ("{mean: 9}", "{a: " * 40 + "}" * 40, "deep at most")):
            with self.subTest(new), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "chat.yaml"
                path.write_text(text.replace(old, new))
                with self.assertRaises(scenario.Mistake) as refused:
                    scenario.read(path, any_server=True)
                self.assertIn(words, str(refused.exception))

    def test_what_only_other_engines_know_is_read_for_these(self):
        text = (ROOT / "hw" / "serving" / "traffic" / "llama_8b_chat.yaml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.yaml"
            path.write_text(text.replace("kind: foretrace", "kind: vllm, speculative: {tokens: 3, acceptance: 70%}"))
            self.assertEqual(scenario.read(path, any_server=True)["engine"]["speculative"]["tokens"], 3)
            with self.assertRaisesRegex(scenario.Mistake, "speculative"):
                scenario.read(path)


class Summary(unittest.TestCase):
    def test_times_of_one_request(self):
        told = results.summary([[0, 1000000, 10, 3, 0, 5000000, 9000000, [1500, 2500]]])
        self.assertEqual((told["ttft_ms"]["p50"], told["tpot_ms"]["p50"], told["e2e_ms"]["p99"]), (4.0, 2.0, 8.0))
        self.assertEqual(told["itl_ms"]["p50"], 2.0)


TINY = {"model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 128, "vocab_size": 1000, "tie_word_embeddings": True, "head_dim": 16}


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class TinyModel(unittest.TestCase):
    def runner(self, config, seed=0):
        import torch
        from model import Model
        from runner import Runner

        torch.manual_seed(seed)
        return Runner(Model(config, torch.device("cpu"), 256, torch.float32), 512, 256)

    def check_chunks(self, config):
        whole, chunked = self.runner(config), self.runner(config)
        ids = list(range(3, 43))
        token = whole.run([(ids, 0, 0)])[0][0]
        chunked.run([(ids[:17], 0, 64)])
        self.assertEqual(chunked.run([([9], 0, 0), (ids[17:], 17, 64)])[0][1], token)
        following = whole.run([(ids + [token], 0, 128)])[0][0]
        self.assertEqual(chunked.run([([token], 40, 64), ([9], 0, 0)])[0][0], following)

    def test_chunks_and_the_cache_give_the_token_of_the_whole_prompt(self):
        self.check_chunks(TINY)

    def test_of_experts_too(self):
        self.check_chunks(TINY | {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32})

    def test_a_preempted_request_generates_what_it_would_have(self):
        from engine import Engine

        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tiny.json").write_text(json.dumps(TINY))
            tokens = []
            for cache in (2048, 128):
                path = pathlib.Path(folder) / "file.yaml"
                path.write_text("schema_version: 1\nname: tiny\nserving:\n  model: tiny.json\n"
                                f"  engine: {{max_batched_tokens: 64, max_requests: 8, cache_tokens: {cache}, max_length: 256}}\n"
                                "  traffic: {arrivals: closed, concurrency: 4, prompt: {mean: 30}, output: {mean: 30}, requests: 5}\n")
                engine = Engine(scenario.read(path), self.runner(TINY), 512)
                engine.serve()
                tokens.append(engine.tokens)
                self.assertEqual(engine.scheduler.preemptions > 0, cache == 128)
            self.assertEqual(tokens[0], tokens[1])


class PredictedByATable(unittest.TestCase):
    """Iterations by a law of our own: a graph takes 2 ms and 1 us a key; chunks 1 ms, or 10 us a token and 1 ns a pair."""

    ROWS = [{"composition": [n, context, 0, 0], "graph": n, "gpu_ns": 1900000 + 1000 * n * context,
             "gpu_min_ns": 1900000 + 1000 * n * context, "wall_ns": 2000000 + 1000 * n * context, "called_ns": 200000}
            for n in (1, 2, 4) for context in (128, 512, 2048)]
    ROWS += [{"composition": [0, 0, chunk, cached], "graph": 0, "gpu_ns": gpu, "gpu_min_ns": gpu,
              "wall_ns": gpu + 100000 + 100 * chunk, "called_ns": 1100000 + 100 * chunk}
             for chunk in (16, 64, 1024, 2048) for cached in (0, 2048)
             for gpu in [max(1000000, 10000 * chunk + chunk * (2 * cached + chunk) // 2)]]

    def test_a_composition_between_measured_ones_follows_the_law(self):
        made = table.Table(self.ROWS)
        self.assertAlmostEqual(made.time_ns(2, 2000, []), 4000000, delta=10)
        self.assertAlmostEqual(made.time_ns(3, 2000, []), 4000000, delta=10)  # in the graph of four
        self.assertAlmostEqual(made.time_ns(0, 0, [(32, 0)]), 1103200, delta=10)  # the host's calls
        self.assertAlmostEqual(made.time_ns(0, 0, [(1536, 512)]) / (15360000 + 1536 * 1280 + 253600), 1, delta=1e-6)

    def test_of_held_out_compositions_a_law_has_no_error(self):
        found = table.errors(self.ROWS)
        self.assertEqual((len(found["decode"]), len(found["prefill"])), (3, 8))
        self.assertLess(max(map(abs, found["decode"] + found["prefill"])), 1e-6)

    def test_a_request_alone_takes_its_iterations(self):
        read = {"engine": ENGINE | {"max_batched_tokens": 2048}, "folder": ".",
                "traffic": {"arrivals": "closed", "concurrency": 1, "requests": 1, "seed": 1,
                            "prompt": {"mean": 64, "spread_ppm": 0}, "output": {"mean": 3, "spread_ppm": 0}}}
        rows, preemptions = table.serve(read, table.Table(self.ROWS), 64, 64, {"eager": 0, "decode": 0})
        loop = table.LOOP_NS + table.LOOP_REQUEST_NS
        self.assertAlmostEqual(rows[0][5], 1106400 + loop, delta=10)
        self.assertAlmostEqual(rows[0][6] - rows[0][5], 2 * (2000000 + loop) + 1000 * (65 + 66), delta=20)
        self.assertEqual(preemptions, 0)

    def test_the_registered_predictions_are_what_the_table_says(self):
        folder = ROOT / "reports" / "measured" / "serving"
        lines = (folder / "predicted.csv").read_text().splitlines()
        name, (middle, *_) = table.predict(ROOT / "hw" / "serving" / "traffic" / "llama_8b_chat.yaml",
                                         table.calibration(folder / "calibration-h100.json.gz"))
        told = next(line for line in lines if line.startswith(f"{name},h100-nvswitch-8,table,tpot_ms_p50,"))
        self.assertAlmostEqual(float(told.split(",")[4]), middle["tpot_ms"]["p50"], delta=0.001)


if __name__ == "__main__":
    unittest.main()
