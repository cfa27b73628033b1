"""A measured timeline of requests: the lanes, regions and operations that a prediction has, too; read by foretrace where it is there."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hw" / "serving" / "engine"))

import scenario  # noqa: E402
import timeline  # noqa: E402
import traffic  # noqa: E402
from scheduler import Request, Scheduler  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
CHAT = ("schema_version: 1\nname: chat\nserving:\n  model: llama3.2-1b\n"
        "  traffic: {arrivals: poisson, rate: 20/s, prompt: {mean: 300, spread: 20%}, output: {mean: 20}, requests: 20}\n")


def served(number, arrival, tokens, admitted=None, preempted=()):
    return timeline.Served(number, arrival, 5, len(tokens), tokens, admitted or [arrival], list(preempted))


def spans(document, lane):
    ops, at = document["ops"], next(row["id"] for row in document["lanes"] if row["name"] == lane)
    return [(ops[s[0]]["kind"], s[3], s[4]) for s in document["spans"] if s[2] == at]


def document_of(read, requests, iterations=(), **more):
    arrivals = traffic.requests(read["traffic"], read["folder"])
    return timeline.of(read, arrivals, requests, iterations, producer="test", machine="1 x test", versions={}, engine="foretrace",
                       **more)


class Lanes(unittest.TestCase):
    READ = {"name": "chat", "path": "chat.yaml", "text": CHAT, "folder": ".",
            "traffic": {"arrivals": "closed", "concurrency": 2, "requests": 2, "seed": 1, "prompt": {"mean": 5, "spread_ppm": 0},
                        "output": {"mean": 2, "spread_ppm": 0}}}

    def test_a_request_waits_computes_its_prompt_and_decodes(self):
        document = document_of(self.READ, [served(0, 0, [20, 30], [5]), served(1, 0, [20, 60], [10, 40], [30])],
                               [timeline.Iteration(5, 20, 0, 10, 2, 0, 3)], block_bytes=100, blocks=4)
        self.assertEqual(spans(document, "request 0"),
                         [("request_waits", 0, 5), ("request_prefill", 5, 20), ("request_decode", 20, 30)])
        self.assertEqual(spans(document, "request 1"),
                         [("request_waits", 0, 10), ("request_prefill", 10, 20), ("request_decode", 20, 30),
                          ("request_preempted", 30, 40), ("request_prefill", 40, 60)])
        self.assertEqual(spans(document, "iterations"), [("prefill_iteration", 5, 20)])
        self.assertEqual(document["memory"], [[0, 0, 5, 300, 400], [0, 0, 20, 0, 400]])
        self.assertAlmostEqual(document["serving"]["waiting_share"], (5 + 10 + 10) / 90)

    def test_what_is_bounded_is_said(self):
        requests = [served(i, 10 * i, [10 * i + 5]) for i in range(2000)]
        document = document_of(self.READ, requests, [timeline.Iteration(i, i + 1, 1, 0, 1, 0, 1) for i in range(120000)])
        lanes = sum(row["kind"] == "request" for row in document["lanes"])
        self.assertTrue(500 < lanes <= timeline.MOST_REQUESTS)
        self.assertEqual(len(spans(document, "iterations")), 40000)
        self.assertIn("3 neighbouring iterations are one span", document["versions"]["drawn"])

    def test_the_hash_is_that_of_the_other_implementation(self):
        """The same stands in the C++ test."""
        arrivals = [traffic.Arrival(5000, 7, 3), traffic.Arrival(None, 8, 4)]
        self.assertEqual(timeline.hash_of("chat", arrivals), "4b05c3ed-f33b-5834-9ec2-0a6b8f7384ed")

    def test_sizes_are_powers_of_two(self):
        self.assertEqual([timeline.power(n, 17) for n in (1, 2, 3, 4, 5, 1 << 20)], [0, 1, 2, 2, 3, 16])
        self.assertEqual([timeline.sizes_text(n, "request") for n in (0, 1, 4)], ["1 request", "2 requests", "9 to 16 requests"])


class Admissions(unittest.TestCase):
    def test_the_scheduler_names_its_victims(self):
        scheduler = Scheduler({"max_batched_tokens": 64, "max_requests": 4, "chunked_prefill": True, "block": 16}, 4)
        for number in range(2):
            scheduler.add(Request(number, 0, 31, 20))
        for now in range(2):
            scheduler.finish(scheduler.schedule(), now)
        scheduler.schedule()
        self.assertEqual([r.id for r in scheduler.victims], [1])


@unittest.skipUnless(FORETRACE, "FORETRACE names the program")
class BesideAPrediction(unittest.TestCase):
    def test_compare_and_report_join_both(self):
        with tempfile.TemporaryDirectory() as folder:
            file, run = pathlib.Path(folder) / "chat.yaml", pathlib.Path(folder) / "run"
            file.write_text(CHAT)
            subprocess.run([FORETRACE, "simulate", str(file), "-o", str(run)], check=True, capture_output=True)
            read = scenario.read(file)
            predicted = json.loads((run / "predicted.timeline.json").read_text())
            arrivals = traffic.requests(read["traffic"])
            requests = [timeline.Served(i, a.at_ns, a.prompt, a.output, [a.at_ns + 10**7 + 4 * 10**6 * k for k in range(a.output)],
                                        [a.at_ns + 1000]) for i, a in enumerate(arrivals)]
            document = document_of(read, requests, [timeline.Iteration(arrivals[0].at_ns, arrivals[0].at_ns + 10**7, 0, 300, 1, 0, 9)],
                                   block_bytes=1 << 20, blocks=100)
            self.assertEqual([(o["kind"], o.get("label"), o["line"]) for o in document["ops"]],
                             [(o["kind"], o.get("label"), o["line"]) for o in predicted["ops"]])
            timeline.write(run / "measured.timeline.json", document)
            compared = subprocess.run([FORETRACE, "compare", str(run)], capture_output=True, text=True)
            self.assertIn(compared.returncode, (0, 1), compared.stderr)
            self.assertIn("request_decode", compared.stdout)
            self.assertRegex(compared.stdout, r"TPOT p50 .* 4\.000 ms ")
            page = pathlib.Path(folder) / "page.html"
            subprocess.run([FORETRACE, "report", str(run), "-o", str(page)], check=True, capture_output=True)
            self.assertIn("measured, running", page.read_text())


if __name__ == "__main__":
    unittest.main()
