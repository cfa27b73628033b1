"""Which training steps are measured: sizes, layouts, and which of them may be used for a fit.

Sizes are those of published models, or blocks of their width: a block's cost does not depend on how many
of them there are. Needs no PyTorch.
"""

import dataclasses
import hashlib


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


def _gpt(layers, hidden, heads, vocab=50304):
    return dict(style="gpt", layers=layers, hidden=hidden, heads=heads, kv_heads=heads,
                head_dim=hidden // heads, ffn=4 * hidden, vocab=vocab, tied=True)


def _llama(layers, hidden, heads, kv_heads, ffn, vocab, tied=False, head_dim=None):
    return dict(style="llama", layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads,
                head_dim=head_dim or hidden // heads, ffn=ffn, vocab=vocab, tied=tied)


# GPT-2's and GPT-3's sizes (vocabulary rounded up to a multiple of 64), Llama 3.2 1B, Qwen2 0.5B, and
# blocks of Llama 3 8B's and 70B's width with Llama 2's vocabulary.
MODELS = {
    "gpt_tiny": _gpt(4, 256, 4, 8192),
    "gpt2_124m": _gpt(12, 768, 12),
    "gpt2_350m": _gpt(24, 1024, 16),
    "gpt2_774m": _gpt(36, 1280, 20),
    "gpt3_1.3b": _gpt(24, 2048, 16),
    "llama_tiny": _llama(8, 512, 8, 4, 1536, 32000),
    "qwen_0.5b": _llama(24, 896, 14, 2, 4864, 151936, tied=True),
    "llama_1b": _llama(16, 2048, 32, 8, 8192, 128256, tied=True),
    "8b_2_layers": _llama(2, 4096, 32, 8, 14336, 32000),
    "8b_4_layers": _llama(4, 4096, 32, 8, 14336, 32000),
    "8b_2_layers_v128k": _llama(2, 4096, 32, 8, 14336, 128256),
    "70b_2_layers": _llama(2, 8192, 64, 8, 28672, 32000),
    "70b_4_layers": _llama(4, 8192, 64, 8, 28672, 32000),
    "70b_10_layers": _llama(10, 8192, 64, 8, 28672, 32000),
}


def _make(family, model, sequence, micro_batch, note="", **options):
    name = f"{family}_{model}_s{sequence}_b{micro_batch}" + (f"_{note}" if note else "")
    return Configuration(**{"id": name, "family": family, "sequence": sequence, "micro_batch": micro_batch,
                            **MODELS[model], **options})


def _one_gpu():
    """In the order in which they are measured: a short budget still has all kinds."""
    amp = dict(precision="amp")
    full = dict(recompute="full")
    yield _make("launch", "gpt_tiny", 256, 8, "amp", full_trace=True, **amp)
    yield _make("gpt", "gpt2_124m", 1024, 8, "amp", **amp)
    yield _make("wide", "8b_4_layers", 2048, 2, full_trace=True)
    yield _make("llama", "llama_1b", 2048, 2, "amp", **amp)
    yield _make("gpt", "gpt2_350m", 1024, 8, "amp", **amp)
    yield _make("wide", "70b_2_layers", 4096, 1, "amp", **amp)
    yield _make("llama", "llama_1b", 4096, 1)
    yield _make("gpt", "gpt2_124m", 1024, 8)
    yield _make("wide", "8b_2_layers", 16384, 1)
    yield _make("gpt", "gpt2_350m", 1024, 8, "amp_full", **amp, **full)
    yield _make("llama", "qwen_0.5b", 2048, 2, "amp", **amp)
    yield _make("gpt", "gpt3_1.3b", 2048, 2, "amp", **amp)
    yield _make("launch", "llama_tiny", 512, 4)
    yield _make("llama", "llama_1b", 2048, 1, "amp_accumulate4", accumulation=4, **amp)
    yield _make("wide", "70b_2_layers", 2048, 1)
    yield _make("gpt", "gpt2_124m", 1024, 8, "amp_foreach", optimizer="foreach", **amp)
    yield _make("llama", "llama_1b", 2048, 2, "selective", recompute="selective")
    yield _make("wide", "8b_4_layers", 8192, 1)
    yield _make("gpt", "gpt2_774m", 1024, 4, "amp", **amp)
    yield _make("launch", "gpt2_124m", 256, 1, "amp", **amp)
    yield _make("wide", "8b_4_layers", 4096, 2, "amp_full", **amp, **full)
    yield _make("llama", "llama_1b", 8192, 1, "full", **full)
    yield _make("gpt", "gpt2_124m", 1024, 4, "amp_accumulate4", accumulation=4, **amp)
    yield _make("llama", "llama_1b", 2048, 2, "chunked_loss", loss_chunks=8)
    yield _make("gpt", "gpt2_124m", 1024, 8, "tf32", precision="tf32")
    yield _make("llama", "qwen_0.5b", 4096, 1)
    yield _make("wide", "70b_2_layers", 8192, 1, "full", **full)
    yield _make("gpt", "gpt3_1.3b", 2048, 4, "full", **full)
    yield _make("gpt", "gpt2_124m", 1024, 32, "amp", **amp)
    yield _make("llama", "llama_1b", 2048, 2, "python_norm", norm="python")
    yield _make("gpt", "gpt2_774m", 512, 2)
    yield _make("wide", "8b_2_layers_v128k", 4096, 1)
    yield _make("gpt", "gpt2_124m", 1024, 8, "untied", tied=False)
    yield _make("gpt", "gpt2_350m", 1024, 2, "fp32", precision="fp32")
    yield _make("launch", "llama_tiny", 256, 1, "foreach", optimizer="foreach")
    yield _make("llama", "llama_1b", 1024, 8, "amp_selective", recompute="selective", **amp)


def _memory():
    """Near the GPU's memory and above it: the verdict is what counts."""
    near = dict(fresh=True, precision="amp")
    yield _make("memory", "gpt3_1.3b", 2048, 32, "amp", only_on="H200", **near)
    yield _make("memory", "70b_10_layers", 2048, 1, "amp", only_on="H200", **near)
    yield _make("memory", "gpt3_1.3b", 2048, 16, "amp", **near)
    yield _make("memory", "llama_1b", 8192, 4, "amp", **near)
    yield _make("memory", "70b_4_layers", 8192, 1, "amp", only_on="H100", **near)


def _compiled():
    yield _make("compile", "gpt2_124m", 1024, 8, "amp_model", compile="model", precision="amp", fresh=True)
    yield _make("compile", "8b_4_layers", 2048, 2, "blocks", compile="blocks", fresh=True)
    yield _make("compile", "gpt_tiny", 256, 8, "amp_model", compile="model", precision="amp", fresh=True)


def _two_gpus():
    amp = dict(precision="amp")
    ddp, fsdp = dict(parallel="ddp"), dict(parallel="fsdp", precision="amp")
    tp = dict(parallel="tp", tied=False)
    sp = dict(tp, sequence_parallel=True)
    pp = dict(parallel="pp", tied=False)
    yield _make("ddp", "gpt2_124m", 1024, 8, "amp", full_trace=True, **ddp, **amp)
    yield _make("fsdp", "8b_4_layers", 4096, 1, full_trace=True, **fsdp)
    yield _make("tp", "8b_4_layers", 4096, 1, "sequence", full_trace=True, **sp)
    yield _make("pp", "llama_1b", 2048, 1, "m8", microbatches=8, **pp)
    yield _make("fsdp", "gpt2_350m", 1024, 8, full_trace=True, **fsdp)
    yield _make("ddp", "llama_1b", 2048, 2, "amp", **ddp, **amp)
    yield _make("tp", "llama_1b", 2048, 2, **tp)
    yield _make("pp", "8b_4_layers", 2048, 1, "m4", microbatches=4, **pp)
    yield _make("fsdp", "llama_1b", 2048, 2, **fsdp)
    yield _make("ddp", "gpt2_350m", 1024, 4, "amp", **ddp, **amp)
    yield _make("tp", "8b_4_layers", 4096, 1, **tp)
    yield _make("fsdp", "70b_2_layers", 4096, 1, **fsdp)
    yield _make("ddp", "gpt2_124m", 1024, 8, "amp_bucket100_view", bucket_cap_mb=100,
                gradient_as_bucket_view=True, **ddp, **amp)
    yield _make("ddp", "llama_1b", 2048, 1, "amp_accumulate4", accumulation=4, **ddp, **amp)
    yield _make("fsdp", "gpt2_350m", 1024, 8, "keep", reshard_after_forward=False, **fsdp)
    yield _make("tp", "70b_2_layers", 4096, 1, "sequence", **sp)
    yield _make("ddp", "gpt_tiny", 256, 8, "amp", **ddp, **amp)
    yield _make("fsdp", "llama_1b", 4096, 2, "full", recompute="full", **fsdp)
    yield _make("pp", "gpt2_350m", 1024, 2, "m4", microbatches=4, **pp)
    yield _make("ddp", "8b_2_layers", 4096, 1, **ddp)
    yield _make("fsdp", "llama_1b", 2048, 2, "keep_bf16_reduce", reshard_after_forward=False,
                reduce_dtype="bf16", **fsdp)
    yield _make("tp", "llama_1b", 2048, 4, "sequence_loss", loss_parallel=True, **sp)
    yield _make("fsdp", "gpt_tiny", 256, 8, **fsdp)
    yield _make("ddp", "gpt2_350m", 1024, 4, "amp_accumulate4_sync", accumulation=4, no_sync=False, **ddp, **amp)
    yield _make("pp", "8b_4_layers", 2048, 1, "m8", microbatches=8, **pp)
    yield _make("fsdp", "8b_4_layers", 8192, 1, "full", recompute="full", **fsdp)
    yield _make("fsdp", "llama_1b", 2048, 1, "accumulate4", accumulation=4, **fsdp)
    yield _make("tp", "70b_2_layers", 2048, 1, **tp)
    yield _make("pp", "llama_1b", 2048, 1, "m4", microbatches=4, **pp)


def all_configurations():
    """Every configuration, the most valuable first within one and two GPUs."""
    from steps.blind import blind_configurations
    from steps.fourth import fourth_configurations
    from steps.second import second_configurations
    from steps.third import third_configurations

    return [*_two_gpus(), *_one_gpu(), *_memory(), *_compiled(), *blind_configurations(), *second_configurations(),
            *third_configurations(), *fourth_configurations()]


def shrunk(c):
    """The same code paths at a size that a CPU runs: a trial of the program, not a measurement."""
    heads = 4
    return dataclasses.replace(c, layers=2, hidden=64, heads=heads, kv_heads=max(2, c.kv_heads * heads // c.heads),
                               head_dim=16, ffn=128, vocab=512, sequence=32, positions=0, micro_batch=min(c.micro_batch, 2))
