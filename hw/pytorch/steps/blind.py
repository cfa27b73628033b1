"""Training steps that were predicted before they were measured: other architectures, lengths and batches.

Families `blind1`, `blind2`, `blind4` and `blind8` are for so many GPUs: train.py --family blind2. What the
model said of them before is in reports/measured/pytorch_steps/blind-1. Needs no PyTorch.
"""

from steps.configurations import Configuration, _gpt, _llama

# SmolLM2 1.7B, TinyLlama 1.1B, Qwen2.5 1.5B; blocks of Llama 2 13B's, Qwen2.5 7B's and Mistral Nemo's width;
# GPT-2's 1.5B, and blocks of OPT 6.7B's and GPT-3 2.7B's width. Vocabularies as published or Llama 2's.
MODELS = {
    "smollm_1.7b": _llama(24, 2048, 32, 32, 8192, 49152, tied=True),
    "tinyllama_1.1b": _llama(22, 2048, 32, 4, 5632, 32000),
    "qwen_1.5b": _llama(28, 1536, 12, 2, 8960, 151936, tied=True),
    "llama2_13b_3_layers": _llama(3, 5120, 40, 40, 13824, 32000),
    "qwen_7b_4_layers": _llama(4, 3584, 28, 4, 18944, 32000),
    "nemo_4_layers": _llama(4, 5120, 32, 8, 14336, 32000, head_dim=128),
    "gpt2_1.5b": _gpt(48, 1600, 25),
    "opt_6.7b_4_layers": _gpt(4, 4096, 32),
    "gpt3_2.7b_8_layers": _gpt(8, 2560, 32),
    "gpt_6_layers": _gpt(6, 512, 8, 16384),
}


def blind_configuration(family, blind, settings, gpus, model, sequence, micro_batch, note, options):
    """One of blind round `blind`: `settings` are the model's, `options` this configuration's own."""
    name = f"{family}{gpus}_{model}_s{sequence}_b{micro_batch}" + (f"_{note}" if note else "")
    settings = dict(precision="amp", blind=blind, processes=max(2, gpus)) | settings | options
    return Configuration(id=name, family=f"{family}{gpus}", sequence=sequence, micro_batch=micro_batch, **settings)


def _make(gpus, model, sequence, micro_batch, note="", **options):
    return blind_configuration("blind", 1, MODELS[model], gpus, model, sequence, micro_batch, note, options)


def _one():
    half, full = dict(precision="bf16"), dict(recompute="full")
    yield _make(1, "tinyllama_1.1b", 2048, 4)
    yield _make(1, "smollm_1.7b", 2048, 2, "bf16", **half)
    yield _make(1, "llama2_13b_3_layers", 4096, 2, "bf16", **half)
    yield _make(1, "qwen_1.5b", 1024, 4)
    yield _make(1, "gpt2_1.5b", 1024, 2, "full", **full)
    yield _make(1, "opt_6.7b_4_layers", 2048, 4)
    yield _make(1, "gpt_6_layers", 512, 8)
    yield _make(1, "qwen_7b_4_layers", 8192, 1, "bf16", **half)
    yield _make(1, "nemo_4_layers", 2048, 3)
    yield _make(1, "gpt3_2.7b_8_layers", 4096, 2, "bf16", **half)
    yield _make(1, "tinyllama_1.1b", 512, 8, "accumulate3", accumulation=3)
    yield _make(1, "smollm_1.7b", 8192, 1, "bf16_full", **half, **full)
    yield _make(1, "llama2_13b_3_layers", 1024, 8)
    yield _make(1, "qwen_1.5b", 3072, 1, "bf16_selective", recompute="selective", **half)
    yield _make(1, "nemo_4_layers", 12288, 1, "bf16", **half)
    yield _make(1, "gpt_6_layers", 1024, 32, "bf16", **half)


def _several(gpus):
    ddp, fsdp = dict(parallel="ddp"), dict(parallel="fsdp")
    tp = dict(parallel="tp", precision="bf16", tied=False)
    yield _make(gpus, "tinyllama_1.1b", 2048, 3, "ddp", **ddp)
    yield _make(gpus, "smollm_1.7b", 2048, 2, "fsdp", full_trace=gpus == 4, **fsdp)
    yield _make(gpus, "llama2_13b_3_layers", 2048, 2, "tp", **tp)
    yield _make(gpus, "qwen_7b_4_layers", 4096, 1, "fsdp", **fsdp)
    yield _make(gpus, "gpt3_2.7b_8_layers", 2048, 4, "ddp", **ddp)
    yield _make(gpus, "nemo_4_layers", 4096, 1, "tp_sequence", sequence_parallel=True, **tp)
    yield _make(gpus, "gpt2_1.5b", 1024, 4, "fsdp_full", recompute="full", **fsdp)
    yield _make(gpus, "qwen_1.5b", 2048, 2, "ddp_bf16", precision="bf16", **ddp)
    yield _make(gpus, "opt_6.7b_4_layers", 1024, 4, "fsdp", **fsdp)
    yield _make(gpus, "smollm_1.7b", 4096, 2, "tp", **tp)
    yield _make(gpus, "tinyllama_1.1b", 1024, 4, "fsdp_keep", reshard_after_forward=False, **fsdp)
    yield _make(gpus, "llama2_13b_3_layers", 8192, 1, "fsdp", **fsdp)
    yield _make(gpus, "gpt_6_layers", 512, 16, "ddp", **ddp)
    yield _make(gpus, "qwen_7b_4_layers", 2048, 2, "ddp_accumulate2", accumulation=2, precision="bf16", **ddp)
    if gpus == 2:
        yield _make(2, "smollm_1.7b", 1024, 1, "pp8", parallel="pp", tied=False, precision="bf16", microbatches=8)
        yield _make(2, "tinyllama_1.1b", 2048, 2, "pp4", parallel="pp", precision="bf16", microbatches=4)
        yield _make(2, "opt_6.7b_4_layers", 2048, 2, "ddp_bucket50", bucket_cap_mb=50, **ddp)


def blind_configurations():
    return [*_several(8), *_several(4), *_several(2), *_one()]
