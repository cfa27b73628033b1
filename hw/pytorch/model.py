"""Decoders in the style of GPT-2 and Llama, written as users write them: plain modules, no kernel of our own.

The forward pass of a whole model returns the loss. Shapes: tokens and labels [batch, sequence], activations
[batch, sequence, hidden]. A pipeline stage (`first`, `last` not both) takes or returns activations.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class PythonRmsNorm(nn.Module):
    """RMSNorm as Hugging Face's Llama has it: five calls in float32."""

    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


def make_norm(c):
    if c.style == "gpt":
        return nn.LayerNorm(c.hidden)
    return PythonRmsNorm(c.hidden) if c.norm == "python" else nn.RMSNorm(c.hidden, eps=1e-5)


def rope_tables(c, device, theta=500000.0):
    """Cosine and sine, each [sequence, head_dim] in float32."""
    exponents = torch.arange(0, c.head_dim, 2, device=device).float() / c.head_dim
    angles = torch.outer(torch.arange(c.sequence, device=device).float(), theta**-exponents)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x [batch, heads, sequence, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Causal attention; under tensor parallelism each rank has its share of the heads."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        width, kv_width = c.heads * c.head_dim, c.kv_heads * c.head_dim
        if c.style == "gpt":
            self.qkv = nn.Linear(c.hidden, 3 * width)
            self.out = nn.Linear(width, c.hidden)
        else:
            self.q = nn.Linear(c.hidden, width, bias=False)
            self.k = nn.Linear(c.hidden, kv_width, bias=False)
            self.v = nn.Linear(c.hidden, kv_width, bias=False)
            self.out = nn.Linear(width, c.hidden, bias=False)

    def core(self, q, k, v, cos, sin):
        if cos is not None:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])

    def forward(self, x, cos=None, sin=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1) if self.c.style == "gpt" else (self.q(x), self.k(x), self.v(x))
        batch, sequence = q.shape[:2]
        q, k, v = (t.view(batch, sequence, -1, self.c.head_dim).transpose(1, 2) for t in (q, k, v))
        if self.c.recompute == "selective":
            mixed = checkpoint(self.core, q, k, v, cos, sin, use_reentrant=False)
        else:
            mixed = self.core(q, k, v, cos, sin)
        return self.out(mixed.transpose(1, 2).reshape(batch, sequence, -1))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gated = c.style == "llama"
        if self.gated:
            self.gate = nn.Linear(c.hidden, c.ffn, bias=False)
        self.up = nn.Linear(c.hidden, c.ffn, bias=not self.gated)
        self.down = nn.Linear(c.ffn, c.hidden, bias=not self.gated)

    def forward(self, x):
        if self.gated:
            return self.down(F.silu(self.gate(x)) * self.up(x))
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.recompute = c.recompute == "full"
        self.attention_norm, self.attention = make_norm(c), Attention(c)
        self.ffn_norm, self.ffn = make_norm(c), FeedForward(c)

    def body(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos=cos, sin=sin)
        return x + self.ffn(self.ffn_norm(x))

    def forward(self, x, cos, sin):
        if self.recompute:
            return checkpoint(self.body, x, cos, sin, use_reentrant=False)
        return self.body(x, cos, sin)


class Decoder(nn.Module):
    """The layers [begin, end) with what comes before the first and behind the last."""

    def __init__(self, c, device, begin=0, end=None):
        super().__init__()
        end = c.layers if end is None else end
        self.c, self.first, self.last = c, begin == 0, end == c.layers
        if self.first:
            self.embedding = nn.Embedding(c.vocab, c.hidden)
            if c.style == "gpt":
                self.positions = nn.Embedding(c.positions or c.sequence, c.hidden)
        self.layers = nn.ModuleList(Block(c) for _ in range(begin, end))
        if self.last:
            self.norm = make_norm(c)
            self.head = nn.Linear(c.hidden, c.vocab, bias=False)
            if self.first and c.tied:
                self.head.weight = self.embedding.weight
        # No buffers: DDP would broadcast them in each forward pass.
        self.rope = rope_tables(c, device) if c.style == "llama" else (None, None)
        self.place = torch.arange(c.sequence, device=device)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def activations(self, x):
        if self.first:
            x = self.embedding(x)
            if self.c.style == "gpt":
                x = x + self.positions(self.place)
        cos, sin = self.rope
        if cos is not None:
            dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
            cos, sin = cos.to(dtype), sin.to(dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x

    def chunk_loss(self, x, labels):
        return F.cross_entropy(self.head(x).float(), labels, reduction="sum")

    def forward(self, x, labels=None):
        x = self.activations(x)
        if not self.last:
            return x
        x = self.norm(x)
        if self.c.loss_chunks > 1:
            parts = zip(x.flatten(0, 1).chunk(self.c.loss_chunks), labels.flatten().chunk(self.c.loss_chunks))
            sums = [checkpoint(self.chunk_loss, part, label, use_reentrant=False) for part, label in parts]
            return torch.stack(sums).sum() / labels.numel()
        logits = self.head(x)
        return logits if labels is None else token_loss(logits, labels)


def token_loss(logits, labels):
    """Cross-entropy over the whole vocabulary in float32, the mean over the tokens."""
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
