"""A fourth round of training steps that were predicted before they were measured: wide ones, which the GPU bounds.

Families `fourth1` and `fourth2` are for so many GPUs: train.py --family fourth2. What the model said of
them before is in reports/measured/pytorch_steps/blind-4. Needs no PyTorch.
"""

from steps.blind import blind_configuration
from steps.configurations import _gpt, _llama

# Blocks of Llama 3.1 405B, Qwen2 72B, Yi 34B, Gemma 2 27B, Phi 4, OLMo 2 7B, Qwen3 1.7B, Falcon 40B (as a Llama: 128 heads
# of 64), GPT-3 175B and BLOOM 176B. Llama 2's vocabulary or GPT-2's; norms and activations are those of model.py.
MODELS = {
    "llama_405b_1_layer": _llama(1, 16384, 128, 8, 53248, 32000),
    "qwen_72b_2_layers": _llama(2, 8192, 64, 8, 29568, 32000),
    "yi_34b_3_layers": _llama(3, 7168, 56, 8, 20480, 32000),
    "gemma2_27b_2_layers": _llama(2, 4608, 32, 16, 36864, 32000, head_dim=128),
    "phi4_4_layers": _llama(4, 5120, 40, 10, 17920, 32000),
    "olmo2_7b_4_layers": _llama(4, 4096, 32, 32, 11008, 32000),
    "qwen3_1.7b_14_layers": _llama(14, 2048, 16, 8, 6144, 32000),
    "falcon_40b_2_layers": _llama(2, 8192, 128, 8, 32768, 32000),
    "gpt3_175b_1_layer": _gpt(1, 12288, 96),
    "bloom_176b_1_layer": _gpt(1, 14336, 112),
}


def _make(gpus, model, sequence, micro_batch, note="", **options):
    return blind_configuration("fourth", 4, MODELS[model], gpus, model, sequence, micro_batch, note, options)


def _one():
    half, full = dict(precision="bf16"), dict(recompute="full")
    yield _make(1, "llama_405b_1_layer", 2048, 1, "bf16", **half)
    yield _make(1, "qwen_72b_2_layers", 4096, 1)
    yield _make(1, "yi_34b_3_layers", 2048, 3, "bf16", **half)
    yield _make(1, "gpt3_175b_1_layer", 2048, 2)
    yield _make(1, "gemma2_27b_2_layers", 8192, 1, "bf16", **half)
    yield _make(1, "phi4_4_layers", 4096, 2)
    yield _make(1, "falcon_40b_2_layers", 2048, 4, "bf16", **half)
    yield _make(1, "bloom_176b_1_layer", 2048, 2, "bf16", **half)
    yield _make(1, "qwen3_1.7b_14_layers", 3072, 3)
    yield _make(1, "olmo2_7b_4_layers", 16384, 1, "bf16_full", **half, **full)


def _two():
    ddp, fsdp = dict(parallel="ddp"), dict(parallel="fsdp")
    tp = dict(parallel="tp", precision="bf16", tied=False)
    pp = dict(parallel="pp", precision="bf16", tied=False)
    yield _make(2, "yi_34b_3_layers", 4096, 1, "fsdp", **fsdp)
    yield _make(2, "gpt3_175b_1_layer", 2048, 2, "tp_sequence", sequence_parallel=True, **tp)
    yield _make(2, "qwen_72b_2_layers", 2048, 2, "ddp_bf16", precision="bf16", **ddp)
    yield _make(2, "phi4_4_layers", 2048, 1, "pp4", microbatches=4, **pp)


def fourth_configurations():
    return [*_two(), *_one()]
