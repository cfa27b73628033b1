"""The engine: requests arrive by the clock, iterations follow each other, and every token's time is written down."""

import random
import time

import traffic
from extents import Extents
from scheduler import Request, Scheduler

COLUMNS = ["begin_ns", "end_ns", "called_ns", "gpu_ns", "graph", "decodes", "decode_context", "chunks", "chunk_tokens",
           "chunk_context", "running", "waiting", "blocks"]


class Engine:
    def __init__(self, scenario, runner, arena_tokens):
        self.scenario, self.runner, self.engine = scenario, runner, scenario["engine"]
        self.vocabulary = runner.model.shape.vocabulary
        block = self.engine["block"]
        limit = self.engine["cache_tokens"]
        self.blocks = min(arena_tokens, limit or arena_tokens) // block
        self.extents = Extents(arena_tokens // block)
        self.scheduler = Scheduler(self.engine, self.blocks, self._place, lambda r: self.extents.give(r.id))
        self.tokens, self.slots, self.no_extent = {}, {}, 0

    def _place(self, request):
        found = self.extents.take(request.id, self.scheduler.blocks_of(request.prompt + request.output))
        if found is None:
            self.no_extent += 1
            return False
        self.slots[request.id] = found * self.engine["block"]
        return True

    def serve(self, limit_s=None):
        """The requests, the iterations (COLUMNS), and whether all requests are done within the limit."""
        arrivals = traffic.requests(self.scenario["traffic"], self.scenario["folder"])
        numbers = random.Random(self.scenario["traffic"].get("seed", 1))
        prompts = [[numbers.randrange(self.vocabulary) for _ in range(a.prompt)] for a in arrivals]
        longest = max(a.prompt + a.output for a in arrivals)
        if longest > self.engine["max_length"]:
            raise ValueError(f"a request has {longest} tokens, max_length is {self.engine['max_length']}")
        requests, iterations, done, next_ = [], [], 0, 0
        start = time.perf_counter_ns()
        while done < len(arrivals):
            now = time.perf_counter_ns() - start
            if limit_s and now > limit_s * 1e9:
                return requests, iterations, False
            while next_ < len(arrivals) and arrivals[next_].at_ns is not None and arrivals[next_].at_ns <= now:
                request = Request(next_, arrivals[next_].at_ns, arrivals[next_].prompt, arrivals[next_].output)
                self.tokens[next_] = prompts[next_]
                requests.append(request)
                self.scheduler.add(request)
                next_ += 1
            if not self.scheduler.busy():
                time.sleep(max(0, arrivals[next_].at_ns - now - 200000) * 1e-9)
                continue
            step = self.scheduler.schedule()
            for request in self.scheduler.victims:
                request.preempted_ns.append(now)
            for request, _ in step:
                if len(request.admitted_ns) == len(request.preempted_ns):
                    request.admitted_ns.append(now)
            row = self.iteration(step, start, now)
            finished = self.scheduler.finish(step, row[1])
            iterations.append(row)
            done += len(finished)
            for _ in finished:  # closed loop: the next one arrives now
                waiting = next((a for a in arrivals[next_:] if a.at_ns is None), None)
                if waiting:
                    waiting.at_ns = row[1]
        return requests, iterations, True

    def iteration(self, step, start, begun):
        """Computes a step; `begun` is when the loop turned to it."""
        rows, decodes, context, chunk_tokens, chunk_context = [], 0, 0, 0, 0
        for request, count in step:
            all_ = self.tokens[request.id]
            rows.append((all_[request.computed:request.computed + count], request.computed, self.slots[request.id]))
            if count == 1:
                decodes, context = decodes + 1, context + request.computed + 1
            else:
                chunk_tokens, chunk_context = chunk_tokens + count, chunk_context + request.computed
        tokens, gpu_ns, graph, called_ns = self.runner.run(rows)
        for (request, count), token in zip(step, tokens):
            if request.computed + count == len(self.tokens[request.id]):
                self.tokens[request.id].append(token)
        end = time.perf_counter_ns() - start
        return [begun, end, called_ns - start, gpu_ns, graph, decodes, context, len(step) - decodes, chunk_tokens, chunk_context,
                len(self.scheduler.running), len(self.scheduler.waiting), self.blocks - self.scheduler.free]
