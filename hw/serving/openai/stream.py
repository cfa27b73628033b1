"""One streamed completion of an OpenAI-compatible server, over asyncio's own connections: no package is needed."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
import urllib.parse

MOST_HEADERS = 200
MOST_MODELS = 1 << 22  # bytes of their list
MOST_LINE = 1 << 20  # bytes of a line of the stream
SPARE = 8  # pieces without a token that some servers send, as the one that says why the answer ended


def plain(text, most=160):
    """What another computer said, as a part of a line: no control characters, and not much."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))[:most]


class Refused(Exception):
    """Why a request has no answer, in one line; equal lines are counted together."""


def number(text, base):
    """Of a header or chunk: how many bytes follow."""
    if re.fullmatch(rb"[0-9a-fA-F]{1,15}" if base == 16 else rb"[0-9]{1,15}", text):
        return int(text, base)
    raise Refused("the answer does not say how long it is")


class Server:
    def __init__(self, url, key=None, timeout_s=300.0):
        parts = urllib.parse.urlsplit(url if "//" in url else "http://" + url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is no URL, as http://127.0.0.1:8000")
        try:
            port = parts.port
        except ValueError:
            raise ValueError(f"'{url}': a port is a number up to 65535") from None
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.host, self.port = parts.hostname, port or (443 if self.tls else 80)
        self.base = parts.path.rstrip("/")
        if not self.base.endswith("/v1"):
            self.base += "/v1"
        self.url = f"{parts.scheme}://{self.host}:{self.port}{self.base}"
        self.key, self.timeout_s = key, timeout_s

    async def _within(self, awaitable, until=None):
        """Before `until`, a time of the loop; without it, within the timeout."""
        left = self.timeout_s if until is None else until - asyncio.get_running_loop().time()
        try:
            return await asyncio.wait_for(awaitable, max(0, left))
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(f"nothing came for {self.timeout_s:g} s") from None
        except ConnectionRefusedError:
            raise Refused(f"{self.host}:{self.port} refuses connections: no server there") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Refused("the connection was cut before the answer was complete") from None
        except (OSError, asyncio.LimitOverrunError, ValueError) as error:
            raise Refused(f"{self.host}:{self.port}: {plain(str(error))}") from None

    def _until(self):
        return asyncio.get_running_loop().time() + self.timeout_s

    async def _open(self, method, path, body):
        reader, writer = await self._within(asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=1 << 16))
        try:
            head = [f"{method} {self.base}{path} HTTP/1.1", f"Host: {self.host}:{self.port}", "Accept: */*", "Connection: close"]
            if self.key:
                head.append(f"Authorization: Bearer {self.key}")
            if body is not None:
                head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
            writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + (body or b""))
            await self._within(writer.drain())
            until = self._until()
            status = (await self._within(reader.readline(), until)).decode("latin-1").split(" ", 2)
            if len(status) < 2 or not re.fullmatch("[0-9]{3}", status[1].strip()):
                raise Refused("the answer is no HTTP" if status[0] else "the connection was cut before the answer was complete")
            headers = {}
            for _ in range(MOST_HEADERS):
                line = (await self._within(reader.readline(), until)).decode("latin-1").strip()
                if not line:
                    break
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            else:
                raise Refused(f"the answer has more than {MOST_HEADERS} headers")
        except BaseException:
            writer.close()
            raise
        return reader, writer, int(status[1]), headers

    async def _pieces(self, reader, headers, until):
        """The body as it comes, of 64 KiB at most each, before `until()`. Raises where it ends too early."""
        async def some(left):
            piece = await self._within(reader.read(min(left, 1 << 16)), until())
            if not piece:
                raise Refused("the connection was cut before the answer was complete")
            return piece

        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                left = number((await self._within(reader.readuntil(b"\r\n"), until())).split(b";")[0].strip(), 16)
                if left == 0:
                    return
                while left > 0:
                    piece = await some(left)
                    left -= len(piece)
                    yield piece
                if await self._within(reader.readexactly(2), until()) != b"\r\n":
                    raise Refused("the answer's chunks are not as long as they say")
        if "content-length" in headers:
            left = number(headers["content-length"].encode(), 10)
            while left > 0:
                piece = await some(left)
                left -= len(piece)
                yield piece
            return
        while piece := await self._within(reader.read(1 << 16), until()):
            yield piece

    async def _whole(self, reader, headers, most):
        """The body, or more than its first `most` bytes; all of it within the timeout."""
        until, whole = self._until(), b""
        async for piece in self._pieces(reader, headers, lambda: until):
            whole += piece
            if len(whole) > most:
                break
        return whole

    async def _refusal(self, reader, headers, status, path):
        try:
            text = (await self._whole(reader, headers, 1 << 16)).decode("utf-8", "replace")
        except Refused:
            text = ""
        try:
            found = json.loads(text)
            found = found.get("error", found) if isinstance(found, dict) else found
            text = str(found.get("message", found)) if isinstance(found, dict) else str(found)
        except (ValueError, RecursionError):
            pass
        text = plain(text)
        hint = f": is {self.url} the server's address?" if status == 404 else ""
        return Refused(f"HTTP {status} for {self.base}{path}{hint}{' (' + text + ')' if text else ''}")

    async def models(self):
        """The names that the server has."""
        reader, writer, status, headers = await self._open("GET", "/models", None)
        try:
            if status != 200:
                raise await self._refusal(reader, headers, status, "/models")
            whole = await self._whole(reader, headers, MOST_MODELS)
            try:
                names = [model["id"] for model in json.loads(whole)["data"]] if len(whole) <= MOST_MODELS else None
                if not all(isinstance(name, str) for name in names):
                    raise TypeError
                return names
            except (ValueError, KeyError, TypeError, RecursionError):
                raise Refused(f"{self.url}/models is no list of models: is that the server's address?") from None
        finally:
            writer.close()

    async def complete(self, request, on_token):
        """Sends a streamed completion; `on_token(nanoseconds)` for each piece with a token. Returns the server's usage.

        A piece with a token must come within the timeout, whatever else does."""
        reader, writer, status, headers = await self._open("POST", "/completions", json.dumps(request).encode())
        usage, left, tokens, is_done = {}, bytearray(), 0, False
        until = self._until()
        try:
            if status != 200:
                raise await self._refusal(reader, headers, status, "/completions")
            async for piece in self._pieces(reader, headers, lambda: until):
                now = time.perf_counter_ns()
                if b"\n" not in piece:
                    left += piece
                    if len(left) > MOST_LINE:
                        raise Refused(f"a line of the stream is longer than {MOST_LINE >> 20} MiB")
                    continue
                *lines, rest = (bytes(left) + piece).split(b"\n")
                left = bytearray(rest)
                for line in lines:
                    line = line.strip()
                    if not line.startswith(b"data:"):
                        continue
                    data = line[5:].strip()
                    if data == b"[DONE]":
                        is_done = True
                        continue
                    has_token, told = event_of(data)
                    usage = told or usage
                    if not has_token:
                        continue
                    tokens += 1
                    if tokens > request["max_tokens"] + SPARE:
                        raise Refused("the answer is longer than asked")
                    until = self._until()
                    on_token(now)
        finally:
            writer.close()
        if not is_done:
            raise Refused("the stream ended before its [DONE]")
        return usage


def event_of(data):
    """Whether the event has a token, and the usage that it tells."""
    try:
        event = json.loads(data)
        if "error" in event:
            error = event["error"]
            raise Refused(f"the server said in its stream: {plain(str(error.get('message', error) if isinstance(error, dict) else error))}")
        has_token = bool(event.get("choices")) and event["choices"][0].get("text") is not None
        return has_token, usage_of(event.get("usage"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(f"an event of the stream is no completion: {plain(data[:80].decode('utf-8', 'replace'))}") from None


def usage_of(told):
    """The counts of tokens in it."""
    if told is None:
        return {}
    counts = {key: told[key] for key in ("prompt_tokens", "completion_tokens") if told.get(key) is not None}
    if not all(type(count) is int and 0 <= count < 1 << 53 for count in counts.values()):
        raise ValueError
    return counts
