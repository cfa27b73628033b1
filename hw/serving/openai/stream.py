"""One streamed completion of an OpenAI-compatible server, over asyncio's own connections: no package is needed."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import urllib.parse


class Refused(Exception):
    """Why a request has no answer, in one line; equal lines are counted together."""


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

    async def _within(self, awaitable):
        try:
            return await asyncio.wait_for(awaitable, self.timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(f"nothing came for {self.timeout_s:g} s") from None
        except ConnectionRefusedError:
            raise Refused(f"{self.host}:{self.port} refuses connections: no server there") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Refused("the connection was cut before the answer was complete") from None
        except (OSError, asyncio.LimitOverrunError, ValueError) as error:
            raise Refused(f"{self.host}:{self.port}: {error}") from None

    async def _open(self, method, path, body):
        reader, writer = await self._within(asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=1 << 20))
        try:
            head = [f"{method} {self.base}{path} HTTP/1.1", f"Host: {self.host}:{self.port}", "Accept: */*", "Connection: close"]
            if self.key:
                head.append(f"Authorization: Bearer {self.key}")
            if body is not None:
                head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
            writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + (body or b""))
            await self._within(writer.drain())
            status = (await self._within(reader.readline())).decode("latin-1").split(" ", 2)
            if len(status) < 2 or not status[1].isdigit():
                raise Refused("the answer is no HTTP" if status[0] else "the connection was cut before the answer was complete")
            headers = {}
            while True:
                line = (await self._within(reader.readline())).decode("latin-1").strip()
                if not line:
                    break
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
        except BaseException:
            writer.close()
            raise
        return reader, writer, int(status[1]), headers

    async def _pieces(self, reader, headers):
        """The body as it comes. Raises where it ends too early."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int((await self._within(reader.readuntil(b"\r\n"))).split(b";")[0], 16)
                piece = await self._within(reader.readexactly(size + 2))
                if size == 0:
                    return
                yield piece[:-2]
        left = int(headers["content-length"]) if "content-length" in headers else None
        while left is None or left > 0:
            piece = await self._within(reader.read(1 << 16 if left is None else min(left, 1 << 16)))
            if not piece:
                if left is not None:
                    raise Refused("the connection was cut before the answer was complete")
                return
            left = None if left is None else left - len(piece)
            yield piece

    async def _whole(self, reader, headers):
        return b"".join([piece async for piece in self._pieces(reader, headers)])

    async def _refusal(self, reader, headers, status, path):
        try:
            text = (await self._whole(reader, headers)).decode("utf-8", "replace")
        except Refused:
            text = ""
        try:
            found = json.loads(text)
            found = found.get("error", found) if isinstance(found, dict) else found
            text = str(found.get("message", found)) if isinstance(found, dict) else str(found)
        except ValueError:
            pass
        text = " ".join(text.split())[:160]
        hint = f": is {self.url} the server's address?" if status == 404 else ""
        return Refused(f"HTTP {status} for {self.base}{path}{hint}{' (' + text + ')' if text else ''}")

    async def models(self):
        """The names that the server has."""
        reader, writer, status, headers = await self._open("GET", "/models", None)
        try:
            if status != 200:
                raise await self._refusal(reader, headers, status, "/models")
            try:
                return [model["id"] for model in json.loads(await self._whole(reader, headers))["data"]]
            except (ValueError, KeyError, TypeError):
                raise Refused(f"{self.url}/models is no list of models: is that the server's address?") from None
        finally:
            writer.close()

    async def complete(self, request, on_token):
        """Sends a streamed completion; `on_token(nanoseconds)` for each piece with a token. Returns the server's usage."""
        reader, writer, status, headers = await self._open("POST", "/completions", json.dumps(request).encode())
        usage, left, is_done = {}, b"", False
        try:
            if status != 200:
                raise await self._refusal(reader, headers, status, "/completions")
            async for piece in self._pieces(reader, headers):
                now = time.perf_counter_ns()
                *lines, left = (left + piece).split(b"\n")
                for line in lines:
                    line = line.strip()
                    if not line.startswith(b"data:"):
                        continue
                    data = line[5:].strip()
                    if data == b"[DONE]":
                        is_done = True
                        continue
                    usage = self._event(data, lambda: on_token(now)) or usage
        finally:
            writer.close()
        if not is_done:
            raise Refused("the stream ended before its [DONE]")
        return usage

    @staticmethod
    def _event(data, on_token):
        try:
            event = json.loads(data)
            if "error" in event:
                error = event["error"]
                raise Refused(f"the server said in its stream: {error.get('message', error) if isinstance(error, dict) else error}"[:200])
            if event.get("choices"):
                if event["choices"][0].get("text") is not None:
                    on_token()
            return event.get("usage")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Refused(f"an event of the stream is no completion: {data[:80].decode('utf-8', 'replace')}") from None
