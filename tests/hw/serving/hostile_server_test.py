"""The client, against servers that do what no server should: it ends, in bounded memory, and keeps the answers that were good."""

import json
import pathlib
import resource
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILE = ("schema_version: 1\nname: chat\nserving:\n  model: llama3.2-1b\n  engine: {kind: vllm}\n"
        "  traffic: {arrivals: poisson, rate: 200/s, prompt: {mean: 9}, output: {mean: 4}, requests: 4}\n")
OK = b"HTTP/1.1 200 OK\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MODELS = OK + b'{"data": [{"id": "tiny"}]}'
DONE = b"data: [DONE]\n\n"
MEMORY = 1 << 30


def event(data):
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


TOKEN = event({"choices": [{"text": "x"}]})
GOOD = OK + TOKEN * 4 + event({"choices": [], "usage": {"completion_tokens": 4}}) + DONE


def usage(told):
    return OK + TOKEN * 4 + event(b'{"choices": [], "usage": ' + told + b"}") + DONE


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        try:
            if head.startswith(b"GET"):
                return self.answer(self.server.models)
            length = next(line for line in head.splitlines() if line.lower().startswith(b"content-length"))
            self.rfile.read(int(length.split(b":")[1]))
            with self.server.lock:
                number, self.server.number = self.server.number, self.server.number + 1  # 0 warms up
            self.answer(self.server.bad[number - 1] if 0 < number <= len(self.server.bad) else GOOD)
        except OSError:
            pass

    def answer(self, said):
        """Bytes, or bytes and what follows them for ever."""
        first, again = said if isinstance(said, tuple) else (said, b"")
        self.wfile.write(first)
        while again:
            self.wfile.write(again)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    block_on_close = False


class HostileServer(unittest.TestCase):
    def ran(self, models=MODELS, bad=(), text=FILE, timeout="10", before=lambda: None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "chat.yaml").write_text(text)
        self.written = self.folder / "runs" / "chat" / "measured.timeline.json"
        before()
        with Server(("127.0.0.1", 0), Handler) as server:
            server.models, server.bad, server.number, server.lock = models, bad, 0, threading.Lock()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ran = subprocess.run([sys.executable, "-B", str(ROOT / "hw/serving/client.py"), "chat.yaml", "--url",
                                  f"http://127.0.0.1:{server.server_address[1]}", "-o", "runs", "--timeout", timeout],
                                 cwd=self.folder, capture_output=True, timeout=60,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
            server.shutdown()
        said = ran.stderr.decode().splitlines()
        return ran.returncode, [line for line in said if not line.startswith("note: one request in a hundred was sent")]

    def check_one_line(self, code, said, words):
        self.assertEqual(code, 2, said)
        self.assertEqual(len(said), 1, said)
        self.assertIn(words, said[0])
        self.assertTrue(said[0].isprintable(), said)

    def check_models(self, answer, words):
        code, said = self.ran(models=answer)
        self.check_one_line(code, said, words)
        self.assertFalse(self.written.exists())

    def check_streams(self, answers, words, lines=1, timeout="10"):
        """Each of them costs its own request."""
        count = len(answers) + 2
        code, said = self.ran(bad=answers, text=FILE.replace("requests: 4", f"requests: {count}"), timeout=timeout)
        self.assertEqual((code, len(said)), (2, lines), said)
        for line in said:
            self.assertIn(f" of {count} requests: {words}", line)
            self.assertTrue(line.isprintable(), line)
        self.assertEqual(json.loads(self.written.read_text())["serving"]["requests"], 2)

    def test_a_list_of_models_that_is_none_or_does_not_end_is_refused(self):
        for answer in ((OK + b'{"data": [', b'"' + b"x" * 65536 + b'",'), OK + b"[" * 100000, OK + b'{"data": [{"id": [1]}]}', OK + b"{"):
            self.check_models(answer, "is no list of models")

    def test_an_error_that_does_not_end_or_is_no_text_is_one_line(self):
        self.check_models((b"HTTP/1.1 500 x\r\n\r\n", b"x" * 65536), "HTTP 500 for /v1/models (xxx")
        self.check_models(b'HTTP/1.1 500 x\r\n\r\n{"error": {"message": "a\\u001b[31m\\nb"}}', "(a\ufffd[31m b)")

    def test_headers_that_do_not_end_are_refused(self):
        self.check_models((b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 1000), "more than 200 headers")
        self.check_models((b"HTTP/1.1 200 OK\r\n", b"a" * 65536), "chunk")  # asyncio's word: exceed the limit

    def test_lengths_that_are_none_are_refused(self):
        self.check_streams((b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                            CHUNKED + b"zz\r\n", CHUNKED + b"-5\r\n"), "the answer does not say how long it is")
        self.check_models((CHUNKED + b"fffffffffff\r\n", b"x" * 65536), "is no list of models")
        self.check_models("HTTP/1.1 ²³ x\r\n\r\n".encode("latin-1"), "the answer is no HTTP")

    def test_a_line_that_does_not_end_is_refused(self):
        self.check_streams([(OK + b"data: ", b"x" * 65536)], "a line of the stream is longer than 1 MiB")

    def test_more_tokens_than_asked_are_refused(self):
        self.check_streams([(OK, TOKEN * 100), usage(b'{"completion_tokens": 4000}')], "the answer is longer than asked")

    def test_a_stream_without_tokens_ends_with_the_timeout(self):
        self.check_streams([(OK, b": ping\n\n" * 100), (OK, event({"choices": []}) * 100)], "nothing came for 2 s", timeout="2")

    def test_events_and_counts_that_are_none_cost_their_request_only(self):
        counts = (b"[1]", b'{"completion_tokens": "4"}', b'{"completion_tokens": NaN}', b'{"completion_tokens": 1e999}',
                  b'{"completion_tokens": -4}', b'{"completion_tokens": true}', b'{"completion_tokens": ' + b"9" * 5000 + b"}")
        events = (b"[" * 100000, b"\x1b[31m\xff\x00", b"7", b"[]")
        self.check_streams([usage(told) for told in counts] + [OK + event(data) + DONE for data in events],
                           "an event of the stream is no completion: ", lines=len(counts) + len(events))
        self.check_streams([OK + event({"error": {"message": "\x1b[31m\nnote: 3 GPUs"}})],
                           "the server said in its stream: \ufffd[31m note: 3 GPUs")

    def check_file(self, text, words):
        code, said = self.ran(text=text)
        self.check_one_line(code, said, words)
        self.assertFalse((self.folder.parent / "elsewhere").exists())

    def test_a_name_is_no_path(self):
        self.check_file(FILE.replace("name: chat", "name: ../../elsewhere"), "is no word of letters")

    def test_values_of_other_kinds_are_refused(self):
        for old, new in (("{mean: 9}", "9"), ("{mean: 9}", "{spread: 30%}"), ("{mean: 9}", "{mean: -9}"), ("{mean: 4}", "{mean: 4.5}"),
                         ("requests: 4", "requests: many"), ("requests: 4", "requests: 99999999999"), ("{kind: vllm}", "vllm")):
            self.check_file(FILE.replace(old, new), "chat.yaml: ")

    def test_a_result_that_cannot_be_written_is_said(self):
        code, said = self.ran(before=lambda: (self.folder / "runs").write_text("a file, where a folder must be"))
        self.assertEqual((code, said), (4, ["error: runs/chat/measured.timeline.json: Not a directory"]))


if __name__ == "__main__":
    unittest.main()
