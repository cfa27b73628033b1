"""Continuous batching over a paged cache, as pure code: which request computes how many tokens in the next iteration.

Requests that run come first, in the order in which they were admitted; then waiting ones, first come, first served. Where
blocks run out, the request admitted last is preempted: its blocks are freed, and it computes all of its tokens again."""

import collections
import dataclasses


@dataclasses.dataclass
class Request:
    id: int
    arrival_ns: int
    prompt: int
    output: int
    generated: int = 0
    computed: int = 0  # tokens whose keys and values are in the cache
    blocks: int = 0
    preempted: int = 0  # times
    token_ns: list = dataclasses.field(default_factory=list)  # when each output token was there
    admitted_ns: list = dataclasses.field(default_factory=list)  # once more after each preemption
    preempted_ns: list = dataclasses.field(default_factory=list)

    @property
    def missing(self):
        return self.prompt + self.generated - self.computed


class Scheduler:
    """`place(request)` says whether the request finds room in memory, `unplace(request)` gives it back."""

    def __init__(self, engine, blocks, place=lambda request: True, unplace=lambda request: None):
        self.engine, self.free, self.all_blocks = engine, blocks, blocks
        self.place, self.unplace = place, unplace
        self.waiting, self.running = collections.deque(), []
        self.preemptions, self.victims = 0, []  # of the last schedule()

    def add(self, request):
        if self.blocks_of(request.prompt + request.output) > self.all_blocks:
            raise ValueError(f"request {request.id} needs more than the {self.all_blocks} blocks of the cache")
        self.waiting.append(request)

    def busy(self):
        return bool(self.waiting or self.running)

    def blocks_of(self, tokens):
        return -(-tokens // self.engine["block"])

    def schedule(self):
        """[(request, tokens)] of the next iteration."""
        self.victims = []
        step, budget, preempted, index = [], self.engine["max_batched_tokens"], False, 0
        while index < len(self.running) and budget > 0:
            request = self.running[index]
            tokens = min(request.missing, budget)
            while not self._take(request, tokens):
                preempted = True
                if self._preempt() is request:
                    tokens = 0
                    break
            if tokens == 0:
                break
            step.append((request, tokens))
            budget -= tokens
            index += 1
        while not preempted and self.waiting and budget > 0 and len(self.running) < self.engine["max_requests"]:
            request = self.waiting[0]
            if request.missing > budget and not self.engine["chunked_prefill"]:
                break
            tokens = min(request.missing, budget)
            if self.blocks_of(tokens) > self.free or not self.place(request):
                break
            self._take(request, tokens)
            self.running.append(self.waiting.popleft())
            step.append((request, tokens))
            budget -= tokens
        return step

    def finish(self, step, now_ns):
        """The iteration's tokens are there. Returns the requests that are done."""
        done = []
        for request, tokens in step:
            request.computed += tokens
            if request.missing > 0:
                continue
            request.generated += 1
            request.token_ns.append(now_ns)
            if request.generated == request.output:
                done.append(request)
                self._release(request)
        if done:
            self.running = [request for request in self.running if request.generated < request.output]
        return done

    def _take(self, request, tokens):
        more = self.blocks_of(request.computed + tokens) - request.blocks
        if more > self.free:
            return False
        if more > 0:
            self.free -= more
            request.blocks += more
        return True

    def _preempt(self):
        victim = self.running.pop()
        self._release(victim)
        victim.computed = 0
        victim.preempted += 1
        self.preemptions += 1
        self.victims.append(victim)
        self.waiting.appendleft(victim)
        return victim

    def _release(self, request):
        self.free += request.blocks
        request.blocks = 0
        self.unplace(request)
