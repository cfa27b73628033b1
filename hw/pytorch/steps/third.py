"""A third round of training steps that were predicted before they were measured, like second.py's.

Families `third1` and `third2` are for so many GPUs: train.py --family third2. What the model said of
them before is in reports/measured/pytorch_steps/blind-3. Needs no PyTorch.
"""

from steps.blind import blind_configuration
from steps.configurations import _gpt, _llama

# SmolLM2 360M, Qwen2.5 3B, Granite 3 2B, InternLM2 1.8B, DeepSeek Coder 1.3B, MiniCPM 1B; blocks of Gemma 2B and Gemma 2
# 9B (heads of 256), Mistral Large, Falcon 3 10B, Mistral Small 24B, Command R; BLOOM 560M, Phi-2 (heads of 80), Pythia
# 1B (heads of 256), GPT-NeoX 20B. Vocabularies as published, rounded up to 64, or Llama 2's. Norms, activations and
# biases are those of model.py, whatever the published model has.
MODELS = {
    "smollm2_360m": _llama(32, 960, 15, 5, 2560, 49152, tied=True),
    "qwen2.5_3b_12_layers": _llama(12, 2048, 16, 2, 11008, 151936, tied=True),
    "granite_2b": _llama(40, 2048, 32, 8, 8192, 49216, tied=True),
    "internlm2_1.8b": _llama(24, 2048, 16, 8, 8192, 92544),
    "deepseek_1.3b": _llama(24, 2048, 16, 16, 5504, 32256),
    "minicpm_1b": _llama(52, 1536, 24, 8, 3840, 73472, tied=True),
    "gemma_2b_6_layers": _llama(6, 2048, 8, 1, 16384, 256000, tied=True, head_dim=256),
    "gemma2_9b_4_layers": _llama(4, 3584, 16, 8, 14336, 32000, head_dim=256),
    "mistral_large_1_layer": _llama(1, 12288, 96, 8, 28672, 32768),
    "falcon3_10b_6_layers": _llama(6, 3072, 12, 4, 23040, 131072, head_dim=256),
    "mistral_small_4_layers": _llama(4, 5120, 32, 8, 32768, 32000, head_dim=128),
    "command_r_2_layers": _llama(2, 8192, 64, 64, 22528, 32000),
    "bloom_560m": _gpt(24, 1024, 16, 250880),
    "phi2_10_layers": _gpt(10, 2560, 32, 51200),
    "pythia_1b": _gpt(16, 2048, 8, 50304),
    "neox_20b_2_layers": _gpt(2, 6144, 64, 50432),
    "gpt_10_layers": _gpt(10, 640, 10, 24576),
}


def _make(gpus, model, sequence, micro_batch, note="", **options):
    return blind_configuration("third", 3, MODELS[model], gpus, model, sequence, micro_batch, note, options)


def _one():
    half, full = dict(precision="bf16"), dict(recompute="full")
    yield _make(1, "mistral_small_4_layers", 3072, 1)
    yield _make(1, "smollm2_360m", 1536, 4)
    yield _make(1, "deepseek_1.3b", 2048, 3, "bf16", **half)
    yield _make(1, "bloom_560m", 512, 4)
    yield _make(1, "gemma2_9b_4_layers", 4096, 1, "bf16", **half)
    yield _make(1, "granite_2b", 1024, 2, "bf16_full", **half, **full)
    yield _make(1, "gpt_10_layers", 384, 6)
    yield _make(1, "command_r_2_layers", 3072, 2, "bf16", **half)
    yield _make(1, "phi2_10_layers", 1024, 4)
    yield _make(1, "qwen2.5_3b_12_layers", 1024, 2, "accumulate2", accumulation=2)
    yield _make(1, "mistral_large_1_layer", 4096, 1, "bf16", **half)
    yield _make(1, "internlm2_1.8b", 6144, 1, "bf16_selective", recompute="selective", **half)


def _two():
    ddp, fsdp, full = dict(parallel="ddp"), dict(parallel="fsdp"), dict(recompute="full")
    tp = dict(parallel="tp", precision="bf16", tied=False)
    pp = dict(parallel="pp", precision="bf16", tied=False)
    yield _make(2, "mistral_small_4_layers", 2048, 2, "fsdp", **fsdp)
    yield _make(2, "smollm2_360m", 1024, 6, "ddp", **ddp)
    yield _make(2, "deepseek_1.3b", 2048, 1, "tp_sequence", sequence_parallel=True, **tp)
    yield _make(2, "internlm2_1.8b", 1024, 1, "pp4", microbatches=4, **pp)
    yield _make(2, "granite_2b", 1024, 2, "fsdp", **fsdp)
    yield _make(2, "command_r_2_layers", 4096, 1, "tp", **tp)
    yield _make(2, "qwen2.5_3b_12_layers", 2048, 2, "ddp_bf16", precision="bf16", **ddp)
    yield _make(2, "phi2_10_layers", 2048, 2, "fsdp_full", **fsdp, **full)
    yield _make(2, "gpt_10_layers", 768, 8, "ddp", **ddp)
    yield _make(2, "neox_20b_2_layers", 2048, 2, "fsdp", **fsdp)
    yield _make(2, "gemma_2b_6_layers", 1024, 2, "ddp", **ddp)
    yield _make(2, "pythia_1b", 1024, 4, "fsdp_keep", reshard_after_forward=False, **fsdp)
    yield _make(2, "mistral_small_4_layers", 2048, 2, "pp6", microbatches=6, **pp)
    yield _make(2, "deepseek_1.3b", 1024, 2, "ddp_accumulate2", accumulation=2, **ddp)
    yield _make(2, "mistral_large_1_layer", 2048, 2, "tp_sequence_loss", sequence_parallel=True, loss_parallel=True,
                **tp)
    yield _make(2, "falcon3_10b_6_layers", 2048, 1, "fsdp", **fsdp)
    yield _make(2, "smollm2_360m", 2048, 2, "fsdp_accumulate3", accumulation=3, **fsdp)
    yield _make(2, "internlm2_1.8b", 2048, 1, "tp", **tp)
    yield _make(2, "bloom_560m", 1024, 2, "ddp", **ddp)
    yield _make(2, "minicpm_1b", 1024, 2, "fsdp_full", **fsdp, **full)


def third_configurations():
    return [*_two(), *_one()]
