"""Training and inference steps of libraries' models, for learning only (the rounds that judge are drawn elsewhere).

PROGRAMS: name -> make(device), which returns a function that makes one step.
"""

import torch
import torch.nn.functional as F


def language(family, size, batch, sequence, dtype="bf16", optimizer="adamw", small=False, **more):
    def make(device):
        import transformers
        config = transformers.AutoConfig.for_model(family, **size, **more)
        torch.manual_seed(0)
        if family in ("t5",):
            model = transformers.AutoModelForSeq2SeqLM.from_config(config)
        elif family in ("bert", "roberta", "distilbert", "electra", "deberta-v2"):
            model = transformers.AutoModelForMaskedLM.from_config(config)
        else:
            model = transformers.AutoModelForCausalLM.from_config(config)
        model = model.to(device=device, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32).train()
        step = optimizer_of(optimizer, model)
        ids = torch.randint(0, config.vocab_size, (batch, sequence), device=device)

        def run():
            with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "autocast"):
                loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            step.step()
            step.zero_grad()
        return run
    return make


def optimizer_of(name, model):
    parameters = model.parameters()
    if name == "adamw_fused":
        return torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=1e-5)


def image(source, name, batch, side=224, dtype="autocast", channels_last=False, optimizer="sgd"):
    def make(device):
        torch.manual_seed(0)
        if source == "timm":
            import timm
            model = timm.create_model(name, num_classes=1000)
        elif source == "torchvision":
            import torchvision
            model = getattr(torchvision.models, name)()
        else:
            import transformers
            config = transformers.AutoConfig.for_model(name, num_labels=1000)
            model = transformers.AutoModelForImageClassification.from_config(config)
        form = torch.channels_last if channels_last else torch.contiguous_format
        model = model.to(device=device, memory_format=form).train()
        step = optimizer_of(optimizer, model)
        x = torch.randn(batch, 3, side, side, device=device).to(memory_format=form)
        target = torch.randint(0, 1000, (batch,), device=device)

        def run():
            with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "autocast"):
                out = model(x)
                loss = F.cross_entropy(getattr(out, "logits", out), target)
            loss.backward()
            step.step()
            step.zero_grad()
        return run
    return make


LLAMA = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, head_dim=64)
QWEN3 = dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=14, num_attention_heads=16, num_key_value_heads=8, head_dim=128, vocab_size=151936)
GEMMA2 = dict(hidden_size=1152, intermediate_size=6912, num_hidden_layers=10, num_attention_heads=4, num_key_value_heads=1, head_dim=256, vocab_size=64000)
MIXTRAL = dict(hidden_size=1024, intermediate_size=2048, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4, num_local_experts=8, vocab_size=32000)
NEOX = dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16, vocab_size=50304)
SMALL = dict(num_hidden_layers=4)
PROGRAMS = {
    "llama_2x2048": language("llama", LLAMA, 2, 2048), "llama_1x256": language("llama", LLAMA, 1, 256, optimizer="adamw_fused"),
    "llama_autocast": language("llama", LLAMA, 2, 1024, dtype="autocast"), "gpt2_8x1024": language("gpt2", dict(n_embd=1024, n_layer=12, n_head=16), 8, 1024),
    "gpt2_f32": language("gpt2", dict(n_layer=6), 4, 512, dtype="f32"), "gpt2_1x128": language("gpt2", {}, 1, 128),
    "qwen3_4x1024": language("qwen3", QWEN3, 4, 1024, optimizer="adamw_fused"), "gemma2_2x1024": language("gemma2", GEMMA2, 2, 1024),
    "bert_32x512": language("bert", {}, 32, 512, dtype="autocast"), "bert_2x64": language("bert", {}, 2, 64), "t5_16x256": language("t5", dict(d_model=512, d_ff=2048, num_layers=6, num_heads=8), 16, 256),
    "mixtral_2x512": language("mixtral", MIXTRAL, 2, 512), "neox_4x1024": language("gpt_neox", NEOX, 4, 1024), "opt_8x512": language("opt", dict(num_hidden_layers=8), 8, 512, dtype="autocast"),
    "resnet50_64": image("torchvision", "resnet50", 64), "resnet50_128_nhwc": image("torchvision", "resnet50", 128, channels_last=True), "resnet18_f32": image("torchvision", "resnet18", 64, dtype="f32"),
    "mobilenet_32": image("torchvision", "mobilenet_v3_large", 32), "vit_64": image("transformers", "vit", 64, optimizer="adamw"), "convnext_32": image("timm", "convnext_tiny", 32, optimizer="adamw"),
    "swin_32": image("timm", "swin_tiny_patch4_window7_224", 32, optimizer="adamw"), "efficientnet_32": image("timm", "efficientnet_b0", 32), "deit_2": image("timm", "deit_small_patch16_224", 2, optimizer="adamw"),
}
