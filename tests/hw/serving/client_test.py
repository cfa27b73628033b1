"""The client, against a small server of this test's own on this computer; the server can also do wrong."""

import contextlib
import http.server
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLIENT = ROOT / "hw" / "serving" / "client.py"
CHAT = ("schema_version: 1\nname: chat\nparameters: {output: 4}\nserving:\n  model: llama3.2-1b\n  parallel: {tensor: 2}\n"
        "  engine: {kind: vllm, release: v1}\n"
        "  traffic: {arrivals: poisson, rate: 200/s, prompt: {mean: 9}, output: {mean: $output}, requests: 6}\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status, message):
        body = json.dumps({"error": {"message": message}}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/v1/models":
            return self.refuse(404, "no such page")
        body = b'{"data": [{"id": "tiny"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def piece(self, data):
        event = b"data: " + data + b"\n\n"
        self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        self.wfile.flush()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.asked.append(asked)
            number = len(self.server.asked) - 1  # 0 is the one that warms up
        wrong = self.server.wrong.get(number)
        if wrong == 429:
            return self.refuse(429, "too many requests")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = asked["max_tokens"] - (1 if wrong == "short" else 0)
        for i in range(count):
            if wrong == "cut" and i == 2:
                self.close_connection = True
                return self.connection.shutdown(socket.SHUT_RDWR)
            time.sleep(0.005)
            self.piece(json.dumps({"choices": [{"text": "x"}]}).encode())
        self.piece(json.dumps({"choices": [], "usage": {"prompt_tokens": len(asked["prompt"]), "completion_tokens": count}}).encode())
        if wrong != "endless":
            self.piece(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")


@contextlib.contextmanager
def server(wrong=None):
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.lock, made.wrong = [], threading.Lock(), wrong or {}
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()


class Client(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "chat.yaml"
        self.file.write_text(CHAT)
        self.written = pathlib.Path(self.folder.name) / "runs" / "chat" / "measured.timeline.json"

    def ran(self, url, *more):
        return subprocess.run([sys.executable, "-B", str(CLIENT), str(self.file), "--url", url, "-o",
                               str(self.written.parents[1]), "--timeout", "20", *more], capture_output=True, text=True, timeout=60)

    def against(self, wrong=None, *more, path=""):
        with server(wrong) as made:
            self.asked = made.asked
            return self.ran(f"http://127.0.0.1:{made.server_port}{path}", *more)

    def document(self):
        return json.loads(self.written.read_text())

    def test_sends_the_files_requests_and_writes_what_they_saw(self):
        ran = self.against()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("6 requests in", ran.stdout)
        asked = self.asked[1:]
        self.assertEqual([(len(a["prompt"]), a["max_tokens"], a["min_tokens"], a["ignore_eos"]) for a in asked], [(9, 4, 4, True)] * 6)
        self.assertTrue(all(256 <= t < 128256 for a in asked for t in a["prompt"]))
        self.assertEqual(len({tuple(a["prompt"]) for a in asked}), 6)
        document = self.document()
        self.assertEqual((document["outcome"]["kind"], document["serving"]["requests"], document["serving"]["engine"]),
                         ("completed", 6, "vllm"))
        times = {row["name"]: row["samples_ns"][0] for row in document["regions"]}
        self.assertGreater(times["TTFT p50"], 4_000_000)
        self.assertGreater(times["TPOT p50"], 4_000_000)
        self.assertAlmostEqual(times["end to end p50"] / (times["TTFT p50"] + 3 * times["TPOT p50"]), 1, delta=0.5)
        self.assertEqual(sum(row["kind"] == "request" for row in document["lanes"]), 6)

    def test_a_parameter_of_the_file_may_be_set(self):
        ran = self.against(None, "--set", "output=2")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual({a["max_tokens"] for a in self.asked[1:]}, {2})
        ran = self.against(None, "--set", "outputs=2")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("no parameter of this file; it has output", ran.stderr)

    def test_a_closed_loop_sends_the_next_one_when_one_has_ended(self):
        self.file.write_text(CHAT.replace("poisson, rate: 200/s", "closed, concurrency: 2"))
        ran = self.against()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        document = self.document()
        self.assertLessEqual(max(row[2] for row in document["serving"]["occupancy"]), 2)
        self.assertEqual(document["serving"]["requests"], 6)

    def check_failure(self, wrong, words, kept):
        ran = self.against(wrong)
        self.assertEqual(ran.returncode, 2)
        self.assertIn(words, ran.stderr)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        document = self.document()
        self.assertEqual((document["outcome"]["kind"], document["serving"]["requests"]), ("failed", kept))
        self.assertIn(words, document["outcome"]["explanation"][0])

    def test_a_server_that_is_busy_costs_its_requests_only(self):
        self.check_failure({2: 429, 4: 429}, "2 of 6 requests: HTTP 429 for /v1/completions (too many requests)", 4)

    def test_a_stream_that_is_cut_is_no_answer(self):
        self.check_failure({3: "cut"}, "1 of 6 requests: the connection was cut", 5)
        self.check_failure({3: "endless"}, "1 of 6 requests: the stream ended before its [DONE]", 5)

    def test_an_answer_that_is_too_short_is_none_of_the_files(self):
        self.check_failure({5: "short"}, "1 of 6 requests: the answer is shorter than asked", 5)

    def check_refusal(self, ran, words):
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn(words, ran.stderr)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertFalse(self.written.exists())

    def test_a_dead_server_is_said_at_once(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        self.check_refusal(self.ran(f"http://127.0.0.1:{port}"), "refuses connections: no server there")

    def test_a_wrong_address_is_said_at_once(self):
        self.check_refusal(self.against(path="/elsewhere"), "HTTP 404 for /elsewhere/v1/models: is http://127.0.0.1")
        self.check_refusal(self.ran("ftp://here"), "is no URL, as http://127.0.0.1:8000")
        self.check_refusal(self.ran("http://127.0.0.1:99999"), "a port is a number")

    def test_a_server_that_refuses_them_all_ends_it(self):
        self.check_refusal(self.against({i: 429 for i in range(9)}), "HTTP 429")
        self.file.write_text(CHAT.replace("requests: 6", "requests: 60"))
        ran = self.against({i: 429 for i in range(1, 99)})
        self.assertEqual(ran.returncode, 2)
        self.assertIn("of 60 requests: HTTP 429", ran.stderr)

    def test_a_mistake_in_the_file_is_said_with_its_name(self):
        self.file.write_text(CHAT.replace("poisson", "poison"))
        self.check_refusal(self.ran("http://127.0.0.1:1"), "chat.yaml: traffic: arrivals are poisson, gamma, closed or trace")


if __name__ == "__main__":
    unittest.main()
