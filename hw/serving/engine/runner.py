"""Iterations on a device: decode-only ones are CUDA graphs of a padded number of requests, others are called kernel by kernel."""

import time
import types

import torch

from attention import Attention

GRAPHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # requests


class Rows:
    """What an iteration computes: of each request (tokens, first position, first slot of its extent)."""

    def __init__(self, requests):
        self.requests = sorted(requests, key=lambda r: len(r[0]) > 1)  # decodes first; stable
        self.decodes = sum(len(r[0]) == 1 for r in requests)
        self.order = sorted(range(len(requests)), key=lambda i: len(requests[i][0]) > 1)


class Runner:
    def __init__(self, model, arena_tokens, max_length, graphs=True, max_requests=256):
        self.model, self.device, self.max_length = model, model.device, max_length
        self.spare = arena_tokens  # a slot for the rows that fill up a graph
        self.cache = model.cache(arena_tokens + 1)
        self.cuda = model.device.type == "cuda"
        self.graphs = {}
        if graphs and self.cuda:
            pool = None
            for size in reversed([g for g in GRAPHS if g < 2 * max_requests]):
                self.graphs[size] = self._capture(size, pool)
                pool = self.graphs[size].graph.pool()

    def run(self, requests, eager=False):
        """The next token of each request, what the GPU took (ns; None without one) and the graph's size (0: none)."""
        rows = Rows(requests)
        size = 0
        if rows.decodes == len(requests) and not eager:
            size = min((g for g in self.graphs if g >= rows.decodes), default=0)
        begin = end = None
        if self.cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if size:
            out = self._replay(self.graphs[size], rows, begin, end)
        else:
            batch, attend = self._batch(rows)
            if begin:
                begin.record()
            out = self.model.forward(batch, self.cache, attend)
            if end:
                end.record()
        called_ns = time.perf_counter_ns()
        found = out.tolist()
        tokens = [0] * len(requests)
        for row, index in enumerate(rows.order):
            tokens[index] = found[row]
        return tokens, round(begin.elapsed_time(end) * 1e6) if begin else None, size, called_ns

    def _batch(self, rows):
        tokens, positions, slots, last, begins, used, chunks = [], [], [], [], [], [], [0]
        for ids, position, slot in rows.requests:
            tokens += ids
            positions += range(position, position + len(ids))
            slots += range(slot + position, slot + position + len(ids))
            last.append(len(tokens) - 1)
            begins.append(slot)
            used.append(position + len(ids))
            if len(ids) > 1:
                chunks.append(chunks[-1] + len(ids))
        count, n = len(tokens), rows.decodes
        wide = self._up(tokens + positions + slots + last, torch.int64)
        narrow = self._up(begins + [0] + used + list(range(n + 1)) + chunks, torch.int32)
        parts = narrow.split((len(begins) + 1, len(used), n + 1, len(chunks)))
        batch = types.SimpleNamespace(tokens=wide[:count], positions=wide[count:2 * count], slots=wide[2 * count:3 * count],
                                      last=None if count == len(last) else wide[3 * count:])
        longest = max(len(r[0]) for r in rows.requests)
        return batch, Attention(n, parts[2], parts[0], parts[1], parts[3], longest, max(used))

    def _up(self, numbers, dtype):
        there = torch.tensor(numbers, dtype=dtype, pin_memory=self.cuda)
        return there.to(self.device, non_blocking=True)

    def _capture(self, size, pool):
        device = self.device
        held = types.SimpleNamespace(
            wide=torch.zeros(3 * size, dtype=torch.int64, device=device),
            narrow=torch.zeros(2 * size + 1, dtype=torch.int32, device=device),
            host_wide=torch.zeros(3 * size, dtype=torch.int64).pin_memory(),
            host_narrow=torch.zeros(2 * size + 1, dtype=torch.int32).pin_memory())
        queries = torch.arange(size + 1, dtype=torch.int32, device=device)
        held.wide[2 * size:] = self.spare
        held.narrow[:size + 1] = self.spare
        held.narrow[size + 1:] = 1
        batch = types.SimpleNamespace(tokens=held.wide[:size], positions=held.wide[size:2 * size], slots=held.wide[2 * size:],
                                      last=None)
        attend = Attention(size, queries, held.narrow[:size + 1], held.narrow[size + 1:], None, 1, self.max_length)
        aside = torch.cuda.Stream()
        with torch.cuda.stream(aside):
            self.model.forward(batch, self.cache, attend)
        aside.synchronize()
        held.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(held.graph, pool=pool):
            held.out = self.model.forward(batch, self.cache, attend)
        held.size, held.queries = size, queries
        return held

    def _replay(self, held, rows, begin, end):
        requests, padding = rows.requests, held.size - len(rows.requests)
        held.host_wide.copy_(torch.tensor(
            [r[0][0] for r in requests] + [0] * padding + [r[1] for r in requests] + [0] * padding +
            [r[2] + r[1] for r in requests] + [self.spare] * padding))
        held.host_narrow.copy_(torch.tensor([r[2] for r in requests] + [self.spare] * (padding + 1) +
                                            [r[1] + 1 for r in requests] + [1] * padding))
        held.wide.copy_(held.host_wide, non_blocking=True)
        held.narrow.copy_(held.host_narrow, non_blocking=True)
        begin.record()
        held.graph.replay()
        end.record()
        return held.out
