"""A headless Chromium, driven over DevTools' pipe: no further package is needed."""

import fcntl
import json
import os
import subprocess
import tempfile
import time


LONGEST_S = 1200  # a browser that hangs: others may load the machine as they like


class Page:
    """One page; evaluate() raises what the page throws, and problems holds what its console says."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="foretrace-browser-")
        to_browser, self.requests = os.pipe()
        self.answers, from_browser = os.pipe()
        # DevTools' pipe is descriptors 3 and 4; dup2 below must not overwrite its own source.
        to_browser, from_browser = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]

        def place():
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        flags = ["--headless", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
                 "--hide-scrollbars", f"--user-data-dir={self.profile.name}"]
        if os.geteuid() == 0:  # Chromium's sandbox refuses root; the pages are our own
            flags.append("--no-sandbox")
        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=place,
                                        pass_fds=(3, 4), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        self.problems = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def read(self, until):
        while b"\0" not in self.buffer:
            if time.monotonic() > until:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self.answers, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"]["exception"].get("description", "exception"))
        elif method == "Log.entryAdded" or method == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(params))
        if method:
            self.events.append(method)
        return message

    def call(self, method, timeout_s=LONGEST_S, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.requests, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + timeout_s
        while True:
            message = self.read(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, file, timeout_s=LONGEST_S):
        """A file or an http address. Returns the seconds until the page was loaded."""
        self.events.clear()
        begin = time.monotonic()
        url = file if file.startswith("http://") else f"file://{os.path.abspath(file)}"
        self.call("Page.navigate", url=url, timeout_s=timeout_s)
        while "Page.loadEventFired" not in self.events:
            self.read(begin + timeout_s)
        return time.monotonic() - begin

    def evaluate(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", "exception"))
        return result["result"].get("value")

    def wait(self, condition, timeout_s=300):
        """Until the script `condition` is true."""
        until = time.monotonic() + timeout_s
        while not self.evaluate(condition):
            if time.monotonic() > until:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def press(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def rest(self):
        """Until the page has drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def size(self, width, height=900, touch=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.rest()

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.requests)
        os.close(self.answers)
        try:
            self.profile.cleanup()
        except OSError:  # a child of the browser may still write there
            pass
