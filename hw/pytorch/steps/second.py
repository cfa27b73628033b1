"""A second round of training steps that were predicted before they were measured, like blind.py's.

Families `second1` and `second2` are for so many GPUs: train.py --family second2. What the model said of
them before is in reports/measured/pytorch_steps/blind-2. Needs no PyTorch.
"""

from steps.blind import blind_configuration
from steps.configurations import _gpt, _llama

# OLMo 1B, StableLM 2 1.6B, Qwen3 0.6B, Cerebras-GPT 590M, OPT 1.3B; blocks of Llama 3.2 3B, Llama 2 7B, Yi 6B,
# Phi-3 mini (heads of 96), Qwen2.5 14B and 32B, GPT-3 13B. Vocabularies as published, rounded up to 64, or
# Llama 2's. Norms and biases are those of model.py, whatever the published model has.
MODELS = {
    "olmo_1b": _llama(16, 2048, 16, 16, 8192, 50304, tied=True),
    "stablelm_1.6b": _llama(24, 2048, 32, 32, 5632, 100352),
    "qwen3_0.6b": _llama(28, 1024, 16, 8, 3072, 151936, tied=True, head_dim=128),
    "llama3.2_3b_8_layers": _llama(8, 3072, 24, 8, 8192, 128256, tied=True),
    "llama2_7b_4_layers": _llama(4, 4096, 32, 32, 11008, 32000),
    "yi_6b_6_layers": _llama(6, 4096, 32, 4, 11008, 64000),
    "phi3_mini_6_layers": _llama(6, 3072, 32, 32, 8192, 32064),
    "qwen_14b_3_layers": _llama(3, 5120, 40, 8, 13824, 152064),
    "qwen_32b_2_layers": _llama(2, 5120, 40, 8, 27648, 32000),
    "cerebras_590m": _gpt(18, 1536, 12),
    "opt_1.3b": _gpt(24, 2048, 32),
    "gpt3_13b_3_layers": _gpt(3, 5120, 40),
    "gpt_8_layers": _gpt(8, 768, 12, 32768),
}


def _make(gpus, model, sequence, micro_batch, note="", **options):
    return blind_configuration("second", 2, MODELS[model], gpus, model, sequence, micro_batch, note, options)


def _one():
    half = dict(precision="bf16")
    yield _make(1, "llama2_7b_4_layers", 4096, 1)
    yield _make(1, "olmo_1b", 2048, 4, "bf16", **half)
    yield _make(1, "qwen3_0.6b", 1024, 4)
    yield _make(1, "gpt3_13b_3_layers", 2048, 3)
    yield _make(1, "llama3.2_3b_8_layers", 4096, 1, "full", recompute="full")
    yield _make(1, "phi3_mini_6_layers", 2048, 2, "bf16", **half)
    yield _make(1, "gpt_8_layers", 256, 8)
    yield _make(1, "qwen_32b_2_layers", 8192, 1, "bf16_selective", recompute="selective", **half)
    yield _make(1, "cerebras_590m", 1024, 4, "accumulate2", accumulation=2)
    yield _make(1, "yi_6b_6_layers", 1536, 3, "bf16", **half)
    yield _make(1, "stablelm_1.6b", 4096, 3, fresh=True)
    yield _make(1, "stablelm_1.6b", 4096, 4, fresh=True)


def _two():
    ddp, fsdp, full = dict(parallel="ddp"), dict(parallel="fsdp"), dict(recompute="full")
    tp = dict(parallel="tp", precision="bf16", tied=False)
    pp = dict(parallel="pp", precision="bf16", tied=False)
    yield _make(2, "llama3.2_3b_8_layers", 4096, 1, "fsdp", **fsdp)
    yield _make(2, "cerebras_590m", 1024, 8, "ddp", **ddp)
    yield _make(2, "llama2_7b_4_layers", 4096, 1, "tp_sequence", sequence_parallel=True, **tp)
    yield _make(2, "yi_6b_6_layers", 2048, 2, "pp4", microbatches=4, **pp)
    yield _make(2, "stablelm_1.6b", 2048, 2, "fsdp", **fsdp)
    yield _make(2, "qwen3_0.6b", 2048, 2, "ddp", **ddp)
    yield _make(2, "qwen_14b_3_layers", 2048, 2, "tp", **tp)
    yield _make(2, "phi3_mini_6_layers", 4096, 2, "ddp_bf16", precision="bf16", **ddp)
    yield _make(2, "opt_1.3b", 1024, 4, "fsdp_full", **fsdp, **full)
    yield _make(2, "gpt3_13b_3_layers", 2048, 2, "fsdp", **fsdp)
    yield _make(2, "olmo_1b", 2048, 3, "fsdp_keep", reshard_after_forward=False, **fsdp)
    yield _make(2, "qwen_32b_2_layers", 8192, 1, "fsdp", **fsdp)
    yield _make(2, "gpt_8_layers", 512, 8, "ddp", **ddp)
    yield _make(2, "olmo_1b", 1024, 3, "ddp_accumulate3", accumulation=3, **ddp)
    yield _make(2, "llama2_7b_4_layers", 1024, 6, "tp_sequence_loss", sequence_parallel=True, loss_parallel=True, **tp)
    yield _make(2, "opt_1.3b", 1024, 1, "pp6", microbatches=6, **pp)
    yield _make(2, "stablelm_1.6b", 1024, 2, "fsdp_accumulate2", accumulation=2, **fsdp)
    yield _make(2, "llama3.2_3b_8_layers", 8192, 1, "fsdp_full", **fsdp, **full)
    yield _make(2, "qwen_32b_2_layers", 4096, 1, "tp", **tp)
    yield _make(2, "phi3_mini_6_layers", 2048, 2, "pp6", microbatches=6, **pp)


def second_configurations():
    return [*_two(), *_one()]
