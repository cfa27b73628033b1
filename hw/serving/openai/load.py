"""A file's arrivals, sent to a server at their times."""

from __future__ import annotations

import array
import asyncio
import collections
import random
import time

from stream import Refused
from timeline import Served

MOST_FAILURES = 20  # of requests behind each other, then no more are sent


class Load:
    def __init__(self, server, model, arrivals, vocabulary, seed=1, ignores_end=True):
        self.server, self.model, self.arrivals, self.ignores_end = server, model, arrivals, ignores_end
        # Special tokens stand at the ends of vocabularies.
        low, high = min(256, vocabulary // 8), max(vocabulary // 8 + 1, vocabulary * 3 // 4)
        numbers = random.Random(seed)
        self.prompts = [array.array("I", (numbers.randrange(low, high) for _ in range(a.prompt))) for a in arrivals]
        self.served, self.failed = [], []  # Served; (number, why, tokens that came)
        self.late_ns, self.counts = [], collections.Counter()
        self.in_a_row = 0

    def body(self, prompt, output):
        """As vLLM and SGLang take it: the asked number of tokens, whatever they are."""
        body = {"model": self.model, "prompt": list(prompt), "max_tokens": output, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}}
        return body | ({"ignore_eos": True, "min_tokens": output} if self.ignores_end else {})

    async def warm(self):
        """A short request: whether the server takes such ones at all."""
        prompt = (self.prompts[0][:16] * 16)[:16] if self.prompts else [256] * 16
        await self.server.complete(self.body(prompt, 4), lambda now: None)

    async def one(self, number):
        """Sends a request and writes down when its tokens came."""
        arrival, tokens = self.arrivals[number], []
        sent = time.perf_counter_ns() - self.start
        due = sent if arrival.at_ns is None else arrival.at_ns
        self.late_ns.append(max(0, sent - due))
        try:
            usage = await self.server.complete(self.body(self.prompts[number], arrival.output),
                                               lambda now: tokens.append(now - self.start))
            self.judge(arrival, tokens, usage)
        except Refused as error:
            self.failed.append((number, str(error), len(tokens)))
            self.in_a_row += 1
            return
        self.in_a_row = 0
        self.served.append(Served(number, due, arrival.prompt, arrival.output, tokens, [max(sent, due)], seen_by_client=True))

    def judge(self, arrival, tokens, usage):
        """Whether the answer is what the file asks for."""
        if not tokens:
            raise Refused("an answer without a token")
        came = usage.get("completion_tokens", len(tokens))
        if came < arrival.output:
            raise Refused("the answer is shorter than asked: does the server take ignore_eos and min_tokens?")
        if came > arrival.output:
            raise Refused("the answer is longer than asked")
        if usage.get("prompt_tokens", arrival.prompt) != arrival.prompt:
            self.counts["prompts that the server counts otherwise"] += 1
        if len(tokens) < came:
            self.counts["answers whose pieces had several tokens"] += 1

    async def run(self):
        """All of them; a request that fails ends no other. Whether all were sent."""
        self.start = time.perf_counter_ns()
        waiting, running = collections.deque(i for i, a in enumerate(self.arrivals) if a.at_ns is None), set()

        async def loop(number):
            await self.one(number)
            while waiting and self.in_a_row < MOST_FAILURES:  # of a closed loop the next one
                await self.one(waiting.popleft())

        for number, arrival in enumerate(self.arrivals):
            if arrival.at_ns is None:
                break
            await asyncio.sleep(max(0, arrival.at_ns - (time.perf_counter_ns() - self.start)) * 1e-9)
            if self.in_a_row >= MOST_FAILURES:
                break
            running.add(asyncio.ensure_future(loop(number)))
        if running:
            await asyncio.gather(*running)
        self.served.sort(key=lambda r: r.id)
        return len(self.served) + len(self.failed) == len(self.arrivals)
