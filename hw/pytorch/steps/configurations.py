"""Which training steps are measured: sizes, layouts, and which of them may be used for a fit.

The list is configurations.json. Families `blind1`, `second2` and so on were predicted before they were measured, for so
many GPUs (reports/measured/pytorch_steps/blind-N). Needs no PyTorch.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One training step. Batch sizes are per process; `micro_batch` samples of `sequence` tokens."""

    id: str
    family: str  # launch, gpt, llama, wide, memory, compile, ddp, fsdp, tp, pp
    style: str  # gpt: LayerNorm, learned positions, GELU; llama: RMSNorm, rope, SwiGLU
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    sequence: int
    micro_batch: int
    accumulation: int = 1
    precision: str = "bf16"  # amp: float32 parameters, bfloat16 compute; bf16; tf32; fp32
    optimizer: str = "fused"  # AdamW: fused, foreach
    recompute: str = "none"  # none, full (each block), selective (attention only)
    compile: str = "none"  # none, blocks, model
    norm: str = "module"  # module: nn.RMSNorm; python: the five calls that Hugging Face's models make
    loss_chunks: int = 1  # more: head and loss chunk by chunk, each recomputed in the backward pass
    parallel: str = "none"  # none, ddp, fsdp, tp, pp
    bucket_cap_mb: int = 25
    gradient_as_bucket_view: bool = False
    no_sync: bool = True  # while accumulating; without it every backward pass communicates
    reshard_after_forward: bool = True
    reduce_dtype: str = "fp32"  # fsdp's reduce-scatter: fp32, bf16
    sequence_parallel: bool = False
    loss_parallel: bool = False
    microbatches: int = 1  # pp: `micro_batch` samples each
    return_outputs: bool = True  # pp: the last stage keeps the logits of all of them
    full_trace: bool = False  # keep the whole trace, not only its summary
    fresh: bool = False  # apart from the others, with its family: fills the memory, or is compiled
    only_on: str = ""  # measured only on GPUs whose name has this
    processes: int = 2  # where it is parallel
    positions: int = 0  # learned ones, style gpt; 0: as many as the sequence has
    blind: int = 0  # predicted and committed before it was measured: the round; it judges only

    @property
    def ranks(self):
        return 1 if self.parallel == "none" else self.processes

    @property
    def mark(self):
        """`judge` or `fit`: depends on the id alone, so that new configurations move no old one. A user's scenario judges."""
        return "judge" if self.blind or self.family == "scenario" or hashlib.sha256(f"train.5:{self.id}".encode()).digest()[0] % 2 else "fit"

    @property
    def parameters(self):
        """Number of parameters of the whole model; tied weights once."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        gated = 3 if self.style == "llama" else 2
        block = attention + gated * self.hidden * self.ffn
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        if self.style == "gpt":
            embeddings += (self.positions or self.sequence) * self.hidden
            block += 4 * self.hidden + 3 * self.hidden + self.hidden + self.ffn + self.hidden  # norms, biases
            return self.layers * block + embeddings + 2 * self.hidden
        return self.layers * (block + 2 * self.hidden) + embeddings + self.hidden


@functools.cache
def all_configurations():
    """Every configuration, the most valuable first within one and two GPUs."""
    lists = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    models = lists["models"]
    return [Configuration(**{**models[step["model"]], **{key: step[key] for key in step if key != "model"}})
            for step in lists["steps"]]


def shrunk(c):
    """The same code paths at a size that a CPU runs: a trial of the program, not a measurement."""
    heads = 4
    return dataclasses.replace(c, layers=2, hidden=64, heads=heads, kv_heads=max(2, c.kv_heads * heads // c.heads),
                               head_dim=16, ffn=128, vocab=512, sequence=32, positions=0, micro_batch=min(c.micro_batch, 2))
