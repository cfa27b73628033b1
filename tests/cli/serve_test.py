#!/usr/bin/env python3
"""foretrace serve over a real connection: serve_test.py FORETRACE"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

FORETRACE = sys.argv[1]
ASKED = {"page": "p", "model": "gpt2", "machine": "h100-nvswitch-8", "gpus": 2, "global_batch": 8, "sequence": 1024,
         "keep": ["tensor=1", "micro=1"], "top": 1}
LONG = {**ASKED, "model": "llama3-405b", "gpus": [2048, 4096], "global_batch": 4096, "sequence": 8192, "keep": []}


class Server:
    def __init__(self, scratch, *flags):
        self.process = subprocess.Popen([FORETRACE, "serve", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "TMPDIR": scratch})
        self.address = self.process.stdout.readline().strip()
        _, self.port, self.token = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)/([0-9a-f]{32})/", self.address).groups()
        self.port = int(self.port)

    def ask(self, method, path, body=None, headers=None, token=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        link.request(method, f"/{token or self.token}/{path}", body, headers or {})
        got = link.getresponse()
        answer = got.status, got.headers, got.read()
        link.close()
        return answer

    def post(self, path, question):
        status, _, body = self.ask("POST", path, json.dumps(question))
        return status, json.loads(body)

    def raw(self, data, seconds=10):
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as link:
            link.sendall(data)
            return link.recv(1 << 16)

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return file.read().split()

    def without_children(self, seconds=20):
        until = time.monotonic() + seconds
        while self.children() and time.monotonic() < until:
            time.sleep(0.05)
        return not self.children()

    def end(self, how=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(20), self.process.communicate()[1]


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="foretrace-serve-test-")
        cls.server = Server(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        code, said = cls.server.end()
        assert code == 0, (code, said)
        assert os.listdir(cls.scratch.name) == [], "its files go with it"
        cls.scratch.cleanup()

    def test_shows_a_page_that_takes_nothing_from_elsewhere(self):
        status, headers, body = self.server.ask("GET", "")
        self.assertEqual(status, 200)
        self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertNotIn(b"http", body.replace(b"http-equiv", b""))
        self.assertNotRegex(body, rb"<script>|style=|onclick")
        for name in ("parts.js", "serve.js", "serve_chart.js", "serve.css", "choices"):
            self.assertEqual(self.server.ask("GET", name)[0], 200, name)
        self.assertNotIn(b"innerHTML", self.server.ask("GET", "serve.js")[2])

    def test_refuses_who_may_not_ask(self):
        own = f"127.0.0.1:{self.server.port}"
        for want, headers, token in ((403, {}, "0" * 32), (421, {"Host": "evil.example"}, None),
                                     (403, {"Origin": "http://evil.example"}, None), (403, {"Origin": "null"}, None),
                                     (403, {"Sec-Fetch-Site": "cross-site"}, None), (200, {"Origin": f"http://{own}"}, None)):
            self.assertEqual(self.server.ask("GET", "choices", headers=headers, token=token)[0], want, headers)
            if want != 200:
                self.assertEqual(self.server.ask("POST", "plan", json.dumps(ASKED), headers, token)[0], want, headers)
        self.assertEqual(self.server.ask("DELETE", "choices")[0], 405)
        for path in ("../etc/passwd", "%2e%2e/etc/passwd", "runs/../../x", "runs/1/1/../report.html", "runs/1/1/report.html",
                     "runs/99999999999999999999/1/report.html", "choices?x=1", "serve.html", "nothing"):
            self.assertEqual(self.server.ask("GET", path)[0], 404, path)
        two = f"GET /{self.server.token}/choices HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n".encode()
        self.assertIn(b" 400 ", self.server.raw(two))

    def test_listens_on_this_computer_only(self):
        with open("/proc/net/tcp") as file:
            places = [line.split()[1] for line in file if line.split()[3] == "0A"]
        self.assertIn(f"0100007F:{self.server.port:04X}", places)
        self.assertNotIn(f"00000000:{self.server.port:04X}", places)

    def test_bounds_headers_and_bodies(self):
        self.assertEqual(self.server.ask("GET", "choices", headers={"X": "a" * 20000})[0], 431)
        head = f"POST /{self.server.token}/plan HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        self.assertIn(b" 413 ", self.server.raw(f"{head}Content-Length: 9000000\r\n\r\n".encode()))
        self.assertIn(b" 413 ", self.server.raw(f"{head}Content-Length: 18446744073709551615\r\n\r\n".encode()))
        chunks = b"".join(b"100000\r\n" + b" " * 0x100000 + b"\r\n" for _ in range(9))
        self.assertIn(b" 413 ", self.server.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks))
        self.assertIn(b" 400 ", self.server.raw(b"no HTTP at all\r\n\r\n"))
        self.assertEqual(self.server.ask("GET", "choices")[0], 200)

    def test_says_what_is_wrong_and_where(self):
        for change, field in (({"machine": "h100-nvswitch-9"}, "machine"), ({"machine": "8xB300+foo"}, "machine"),
                              ({"model": "llama9"}, "model"), ({"gpus": 0}, "gpus"), ({"with": ["nicc=2x"]}, "with"),
                              ({"machine": "/etc/passwd"}, "machine"), ({"global_batch": 7, "keep": ["tensor=1", "pipeline=1"]}, "gpus")):
            status, answer = self.server.post("plan", {**ASKED, **change})
            self.assertEqual((status, answer["error"]["field"]), (422, field), answer)
        asked = {key: value for key, value in ASKED.items() if key != "model"}
        status, answer = self.server.post("plan", {**asked, "config": '{\n "model_type": "llama",\n "hidden_size": "<img src=x>"}'})
        self.assertEqual((status, answer["error"]["field"], answer["error"]["line"]), (422, "config", 3), answer)
        self.assertNotIn(self.scratch.name, json.dumps(answer))
        self.assertEqual(self.server.ask("POST", "plan", b"\xff{")[0], 422)

    def test_plans_and_opens_a_row(self):
        status, coarse = self.server.post("plan", {**ASKED, "coarse": True})
        self.assertEqual(status, 200, coarse)
        self.assertGreater(coarse["answer"]["searched"][0]["fitting"], 0)
        status, full = self.server.post("plan", ASKED)
        self.assertEqual(status, 200, full)
        bounds = {row["layout"]: row["at_least_s"] for row in coarse["answer"]["rows"]}
        for row in full["answer"]["rows"]:
            self.assertLessEqual(bounds.get(row["layout"], 0), row["step_s"])
        status, run = self.server.post("row", {"page": "p", "plan": full["plan"], "row": 1})
        self.assertEqual(status, 200, run)
        status, headers, body = self.server.ask("GET", run["report"])
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertIn(b"<html", body)
        status, headers, body = self.server.ask("GET", run["trace"])
        self.assertIn("attachment", headers["Content-Disposition"])
        self.assertGreater(len(body), 1000)
        self.assertEqual(self.server.post("row", {"page": "p", "plan": full["plan"], "row": 9})[0], 422)
        self.assertEqual(self.server.post("row", {"page": "p", "plan": 99999, "row": 1})[0], 410)

    def test_exports_a_scenario_without_this_computers_paths(self):
        asked = {key: value for key, value in ASKED.items() if key != "model"}
        config = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 1000}
        status, full = self.server.post("plan", {**asked, "config": json.dumps(config)})
        self.assertEqual(status, 200, full)
        self.assertIn("{config: 'config.json'}", full["answer"]["rows"][0]["scenario"])
        self.assertNotIn(self.scratch.name, json.dumps(full))
        self.assertEqual(self.server.post("row", {"page": "p", "plan": full["plan"], "row": 1})[0], 200)

    def test_ends_a_plan_that_nobody_waits_for(self):
        body = json.dumps(LONG).encode()
        head = f"POST /{self.server.token}/plan HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nContent-Length: {len(body)}\r\n\r\n"
        link = socket.create_connection(("127.0.0.1", self.server.port))
        link.sendall(head.encode() + body)
        time.sleep(0.3)
        self.assertTrue(self.server.children())
        link.close()
        self.assertTrue(self.server.without_children())
        other = socket.create_connection(("127.0.0.1", self.server.port))
        other.sendall(head.encode() + body)
        time.sleep(0.3)
        self.assertEqual(self.server.post("plan", {**ASKED, "coarse": True})[0], 200)  # the same page asks again
        self.assertIn(b" 409 ", other.recv(1000))
        other.close()

    def test_serves_others_while_connections_hang(self):
        hanging = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(20)]
        for link in hanging:
            link.sendall(b"GET /")
        self.assertEqual(self.server.ask("GET", "choices")[0], 200)
        for link in hanging:
            link.close()


class Ends(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="foretrace-serve-test-")

    def tearDown(self):
        self.scratch.cleanup()

    def planning(self):
        server = Server(self.scratch.name)
        body = json.dumps(LONG).encode()
        link = socket.create_connection(("127.0.0.1", server.port))
        link.sendall(f"POST /{server.token}/plan HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        until = time.monotonic() + 10
        while not (children := server.children()) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertTrue(children)
        return server, link, children

    def gone(self, processes, seconds=10):
        until = time.monotonic() + seconds
        while any(os.path.exists(f"/proc/{one}") for one in processes) and time.monotonic() < until:
            time.sleep(0.05)
        return not any(os.path.exists(f"/proc/{one}") for one in processes)

    def test_with_an_interrupt_and_takes_its_children_along(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            server, link, children = self.planning()
            self.assertEqual(server.end(how)[0], 0)
            self.assertTrue(self.gone(children))
            self.assertEqual(os.listdir(self.scratch.name), [])
            link.close()

    def test_killed_leaves_no_process(self):
        server, link, children = self.planning()
        server.end(signal.SIGKILL)
        self.assertTrue(self.gone(children))
        link.close()

    def test_takes_away_what_a_killed_one_left_and_nothing_else(self):
        server, link, _ = self.planning()
        other = Server(self.scratch.name)
        server.end(signal.SIGKILL)
        link.close()
        self.assertEqual(len(os.listdir(self.scratch.name)), 2)
        os.mkdir(os.path.join(self.scratch.name, "foretrace-serve-mine"))
        last = Server(self.scratch.name)
        self.assertEqual(len(os.listdir(self.scratch.name)), 3)  # of the other, the last, and no one's of ours
        self.assertEqual(other.end()[0], 0)
        self.assertEqual(last.end()[0], 0)
        self.assertEqual(os.listdir(self.scratch.name), ["foretrace-serve-mine"])

    def test_refuses_a_port_that_is_taken(self):
        server = Server(self.scratch.name)
        ran = subprocess.run([FORETRACE, "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("--port", ran.stderr)
        self.assertEqual(server.end()[0], 0)


class WithoutAnAddress(unittest.TestCase):
    def test_a_server_whose_address_nobody_can_read_ends(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([FORETRACE, "serve"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("cannot write the address to stdout: No space left on device", done.stderr)

    def test_a_server_without_a_place_for_its_files_names_the_variable(self):
        done = subprocess.run([FORETRACE, "serve"], capture_output=True, text=True, timeout=60, env={**os.environ, "TMPDIR": "/dev/null"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no directory for temporary files", done.stderr)
        self.assertIn("TMPDIR", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
