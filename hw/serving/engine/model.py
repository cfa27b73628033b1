"""A decoder of random weights by its config.json (Llama, Qwen2, Qwen3, Qwen3's experts), one flat batch of tokens at a time."""

import torch
import torch.nn.functional as F

TYPES = ("llama", "qwen2", "qwen3", "qwen3_moe")


class Shape:
    def __init__(self, c):
        if c["model_type"] not in TYPES:
            raise ValueError(f"model_type {c['model_type']}: the engine has {', '.join(TYPES)}")
        self.layers, self.hidden, self.heads = c["num_hidden_layers"], c["hidden_size"], c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads", self.heads)
        self.width = c.get("head_dim") or self.hidden // self.heads
        self.inner, self.vocabulary = c["intermediate_size"], c["vocab_size"]
        self.tied = c.get("tie_word_embeddings", False)
        self.qk_norm, self.bias = c["model_type"].startswith("qwen3"), c["model_type"] == "qwen2"
        self.experts = c.get("num_experts", 0) if c["model_type"] == "qwen3_moe" else 0
        if self.experts:
            self.inner, self.chosen = c["moe_intermediate_size"], c["num_experts_per_tok"]
        self.cache_bytes = 2 * self.layers * self.kv_heads * self.width * 2  # of a token, in bfloat16


class Model:
    def __init__(self, config, device, max_length, dtype=torch.bfloat16):
        self.shape = s = Shape(config)
        self.device, self.dtype = device, dtype
        q, kv = s.heads * s.width, s.kv_heads * s.width
        self.embedding = self._random(s.vocabulary, s.hidden)
        self.head = self.embedding if s.tied else self._random(s.vocabulary, s.hidden)
        self.norm = self._ones(s.hidden)
        self.layers = []
        for _ in range(s.layers):
            layer = {"norm1": self._ones(s.hidden), "qkv": self._random(q + 2 * kv, s.hidden), "out": self._random(s.hidden, q),
                     "norm2": self._ones(s.hidden), "bias": self._random(q + 2 * kv) if s.bias else None}
            if s.qk_norm:
                layer |= {"q_norm": self._ones(s.width), "k_norm": self._ones(s.width)}
            if s.experts:
                layer |= {"router": self._random(s.experts, s.hidden),
                          "up": self._random(s.experts, 2 * s.inner, s.hidden).transpose(1, 2),
                          "down": self._random(s.experts, s.hidden, s.inner).transpose(1, 2)}
            else:
                layer |= {"up": self._random(2 * s.inner, s.hidden), "down": self._random(s.hidden, s.inner)}
            self.layers.append(layer)
        angles = torch.outer(torch.arange(max_length).float(), 500000.0 ** (-torch.arange(0, s.width, 2).float() / s.width))
        both = torch.cat((angles, angles), 1)
        self.cos, self.sin = both.cos().to(device, dtype), both.sin().to(device, dtype)

    def _random(self, *sizes):
        return torch.empty(sizes, device=self.device, dtype=self.dtype).normal_(0, 0.02)

    def _ones(self, size):
        return torch.ones(size, device=self.device, dtype=self.dtype)

    def cache(self, tokens):
        """Keys and values of each layer: [tokens, heads, width]."""
        s = self.shape
        one = lambda: torch.zeros(tokens, s.kv_heads, s.width, device=self.device, dtype=self.dtype)
        return [(one(), one()) for _ in range(s.layers)]

    def forward(self, batch, cache, attend):
        """`batch`: tokens, positions, slots of the cache, and the rows that end a prompt or decode. The next token of each of these."""
        s = self.shape
        x = F.embedding(batch.tokens, self.embedding)
        cos, sin = self.cos[batch.positions].unsqueeze(1), self.sin[batch.positions].unsqueeze(1)
        for layer, (keys, values) in zip(self.layers, cache):
            h = F.rms_norm(x, (s.hidden,), layer["norm1"])
            qkv = F.linear(h, layer["qkv"], layer["bias"]).view(-1, s.heads + 2 * s.kv_heads, s.width)
            q, k, v = qkv.split((s.heads, s.kv_heads, s.kv_heads), 1)
            if s.qk_norm:
                q, k = F.rms_norm(q, (s.width,), layer["q_norm"]), F.rms_norm(k, (s.width,), layer["k_norm"])
                q, k = rotated(q, cos, sin), rotated(k, cos, sin)
            else:
                q, k = rotated(qkv[:, :s.heads + s.kv_heads], cos, sin).split((s.heads, s.kv_heads), 1)
            keys.index_copy_(0, batch.slots, k)
            values.index_copy_(0, batch.slots, v)
            x = x + F.linear(attend(q, keys, values).reshape(-1, s.heads * s.width), layer["out"])
            h = F.rms_norm(x, (s.hidden,), layer["norm2"])
            x = x + (self.experts(h, layer) if s.experts else gated(F.linear(h, layer["up"]), s.inner, layer["down"]))
        x = F.rms_norm(x if batch.last is None else x[batch.last], (s.hidden,), self.norm)
        return F.linear(x, self.head).argmax(-1)

    def experts(self, h, layer):
        s = self.shape
        weights, chosen = F.linear(h, layer["router"]).float().softmax(-1).topk(s.chosen, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(h.dtype).flatten()
        sorted_, order = chosen.flatten().sort(stable=True)
        ends = torch.searchsorted(sorted_, torch.arange(s.experts, device=h.device), right=True, out_int32=True)
        rows = order // s.chosen
        up = F.grouped_mm(h[rows], layer["up"], offs=ends)
        down = F.grouped_mm(F.silu(up[:, :s.inner]) * up[:, s.inner:], layer["down"], offs=ends)
        return torch.zeros_like(h).index_add_(0, rows, down * weights[order].unsqueeze(1))


def gated(up, inner, down):
    return F.linear(F.silu(up[:, :inner]) * up[:, inner:], down)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin
