"""The text of a script: imports, model, data, optimizer, loop, in the order and the styles that people write them."""

TENSOR_PARALLEL = ("llama", "qwen2", "qwen3", "mistral", "olmo2")
UNUSED_PARAMETERS = ("dinov2",)  # its mask token; DistributedDataParallel stops at the second step where it is not told
PARAMETERS_MOST, SECONDS_MOST = 2.2e9, 0.30


def parameters(d):
    """About how many the model has."""
    s = d.get("shape", {})
    h = s.get("hidden_size", s.get("n_embd", s.get("d_model", 768)))
    layers = next((s[k] for k in ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers") if k in s), 12)
    f = s.get("intermediate_size", s.get("ffn_dim", s.get("d_ff", s.get("encoder_ffn_dim", 4 * h))))
    vocab = s.get("vocab_size", 50257 if d["family"] == "gpt2" else 30522)
    return vocab * h * (1 if s.get("tie_word_embeddings") or d["kind"] != "causal" else 2) + layers * (4 * h * h + 3 * h * f) * (2 if d["kind"] == "seq2seq" else 1)


def too_much(d):
    """True where an H100's step would take longer than a round has time for."""
    if d["kind"] == "image":
        return d["batch"] > 64 and d["precision"] in ("fp32",)
    if d["kind"] == "decode":
        return parameters(d) > PARAMETERS_MOST
    tokens = d["batch"] * d["seq"] * d["accumulate"]
    rate = {"bf16": 350e12, "autocast": 300e12, "fp16 scaler": 300e12, "tf32": 180e12, "fp32": 45e12}[d["precision"]]
    return parameters(d) > PARAMETERS_MOST or 6 * parameters(d) * tokens / rate > SECONDS_MOST


def keywords(values):
    return ", ".join(f"{k}={v!r}" for k, v in values.items())


def script(d):
    lines = [f'"""{d["name"]}: {d["family"]}, {d["kind"]}, {d["precision"]}"""', *imports(d), "", *setup(d), *model(d), *parallel(d), *(["model = torch.compile(model)"] if d.get("compile") else [])]
    if d.get("infer"):
        lines += [*data(d), *forward_loop(d)]
    else:
        lines += decode_loop(d) if d["kind"] == "decode" else [*optimizer(d), *data(d), *loop(d)]
    if d["gpus"] > 1:
        lines += ["dist.destroy_process_group()"]
    return "\n".join(lines) + "\n"


def imports(d):
    lines = ["import os", "", "import torch"]
    if d["gpus"] > 1:
        lines.append("import torch.distributed as dist")
    if d["kind"] == "image" and d["source"] != "hf":
        lines.append("import timm" if d["source"] == "timm" else "import torchvision")
    elif d["kind"] in ("causal", "decode"):
        lines.append(f"from transformers import AutoModelForCausalLM, {d['config']}")
    else:
        lines.append(f"from transformers import {d['config']}, {d['model']}")
    if d.get("lora"):
        lines.append("from peft import LoraConfig, get_peft_model")
    if d.get("optimizer") == "adafactor":
        lines.append("from transformers.optimization import Adafactor")
    if d["kind"] == "decode":
        lines.append("from transformers import DynamicCache")
    if d["kind"] == "decode" or d.get("infer"):
        lines += ["", "import foretrace"]
    return lines


def setup(d):
    lines = ["torch.manual_seed(0)"]
    if d["gpus"] > 1:
        lines += ['dist.init_process_group("nccl")', 'rank = int(os.environ["LOCAL_RANK"])', "torch.cuda.set_device(rank)", 'device = torch.device("cuda", rank)']
    else:
        lines.append('device = torch.device("cuda")')
    # others may have set it before in the same process
    lines.append(f'torch.backends.cuda.matmul.allow_tf32 = {d["precision"] == "tf32"}')
    if d["kind"] == "image":
        lines.append(f'torch.backends.cudnn.allow_tf32 = {d["precision"] != "fp32"}')
    return lines


def model(d):
    if d["kind"] == "image" and d["source"] != "hf":
        make = f'timm.create_model("{d["family"]}", num_classes=1000)' if d["source"] == "timm" else f"torchvision.models.{d['family']}(weights=None)"
        lines = [f"model = {make}.to(device)"]
        if d["channels_last"]:
            lines.append("model = model.to(memory_format=torch.channels_last)")
        return lines + ["model.eval()" if d.get("infer") else "model.train()"]
    dtype = "torch.bfloat16" if d["precision"] == "bf16" else "torch.float32"
    lines = [f"config = {d['config']}({keywords(d['shape'])})"]
    if d["kind"] in ("causal", "decode"):
        eager = ', attn_implementation="eager"' if d.get("attention") == "eager" else ""
        lines += ["with torch.device(device):",
                  f'    model = AutoModelForCausalLM.from_config(config, dtype={dtype}{eager})']
    else:
        lines += ["with torch.device(device):", f"    model = {d['model']}(config)"]
        if d["precision"] == "bf16":
            lines.append("model = model.to(torch.bfloat16)")
    lines.append("model.eval()" if d["kind"] == "decode" or d.get("infer") else "model.train()")
    if d["kind"] == "causal":
        lines.append("model.config.use_cache = False")
    if d.get("checkpointing"):
        lines.append("model.gradient_checkpointing_enable()")
    if d.get("lora"):
        lines.append('model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))')
    return lines


def parallel(d):
    if d.get("parallel") == "ddp":
        unused = ", find_unused_parameters=True" if d["family"] in UNUSED_PARAMETERS else ""
        return [f"model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank]{unused})"]
    if d.get("parallel") == "fsdp":
        return ["from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy",
                "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)",
                "blocks = max((m for m in model.modules() if isinstance(m, torch.nn.ModuleList)), key=len)",
                "for block in blocks:", "    fully_shard(block, mp_policy=policy)", "fully_shard(model, mp_policy=policy)"]
    if d.get("parallel") == "tp":
        return ["from torch.distributed.device_mesh import init_device_mesh",
                "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module",
                'mesh = init_device_mesh("cuda", (dist.get_world_size(),))',
                "plan = {f'self_attn.{n}_proj': ColwiseParallel() for n in 'qkv'} | {'self_attn.o_proj': RowwiseParallel(), 'mlp.gate_proj': ColwiseParallel(),",
                "                                                                   'mlp.up_proj': ColwiseParallel(), 'mlp.down_proj': RowwiseParallel()}",
                "for block in model.model.layers:", "    parallelize_module(block, mesh, plan)"]
    return []


def optimizer(d):
    name = d["optimizer"]
    trained = "[p for p in model.parameters() if p.requires_grad]" if d.get("lora") else "model.parameters()"
    if name == "sgd":
        line = f"optimizer = torch.optim.SGD({trained}, lr=0.1, momentum=0.9, weight_decay=1e-4)"
    elif name == "adafactor":
        line = f"optimizer = Adafactor({trained}, lr=1e-3, relative_step=False, scale_parameter=False)"
    else:
        more = {"adamw": "", "adamw fused": ", fused=True", "adamw loop": ", foreach=False"}[name]
        line = f"optimizer = torch.optim.AdamW({trained}, lr=1e-4, weight_decay=0.01{more})"
    lines = [line]
    if d["scheduler"]:
        lines.append("scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 100))")
    if d["precision"] == "fp16 scaler":
        lines.append('scaler = torch.amp.GradScaler("cuda")')
    return lines


def tensors(d):
    """What one batch is made of: name -> expression; on the CPU where `where` is empty."""
    n = d["batch"]
    if d["kind"] == "image":
        return {"images": f"torch.randn({n}, 3, 224, 224{{}})", "labels": f"torch.randint(0, 1000, ({n},){{}})"}
    vocab = 1000
    made = {"input_ids": f"torch.randint({vocab}, ({n}, {d['seq']}){{}})"}
    if d.get("mask"):
        made["attention_mask"] = f"torch.ones({n}, {d['seq']}, dtype=torch.long{{}})"
    if d["kind"] == "seq2seq":
        made["labels"] = f"torch.randint({vocab}, ({n}, {d['target']}){{}})"
    elif d["kind"] == "encoder" and not d["model"].endswith("MaskedLM"):
        made["labels"] = f"torch.randint(0, 2, ({n},){{}})"
    elif d["kind"] == "encoder":
        made["labels"] = f"torch.randint({vocab}, ({n}, {d['seq']}){{}})"
    return made


def data(d):
    made = tensors(d)
    if d["data"] == "on the gpu":
        return ["batch = {"] + [f'    "{k}": {v.format(", device=device")},' for k, v in made.items()] + ["}"]
    if d["data"] == "pinned":
        return ["def next_batch():", "    return {"] + [f'        "{k}": {v.format("")}.pin_memory().to(device, non_blocking=True),' for k, v in made.items()] + ["    }"]
    several = {k: v.replace(f"({d['batch']},", f"({d['batch'] * 4},", 1) for k, v in made.items()}
    keys = ", ".join(several)
    values = ", ".join(v.format("") for v in several.values())
    return ["from torch.utils.data import DataLoader, TensorDataset", f"dataset = TensorDataset({values})",
            f"loader = DataLoader(dataset, batch_size={d['batch']}, shuffle=True, drop_last=True)", "", "", "def batches():", "    while True:",
            f"        for {keys}{',' if ',' not in keys else ''} in loader:", "            yield {" + ", ".join(f'"{k}": {k}.to(device)' for k in several) + "}", "", "",
            "stream = batches()"]


def forward(d):
    if d["kind"] == "image":
        x = 'batch["images"]' + (".contiguous(memory_format=torch.channels_last)" if d["channels_last"] else "")
        logits = f"model({x})" if d["source"] != "hf" else f"model(pixel_values={x}).logits"
        return [f'loss = torch.nn.functional.cross_entropy({logits}, batch["labels"])']
    if d["kind"] == "causal" and d["loss"] == "own":
        return ["logits = model(**batch).logits",
                'loss = torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)).float(), batch["input_ids"][:, 1:].reshape(-1))']
    if d["kind"] == "causal":
        return ['loss = model(**batch, labels=batch["input_ids"]).loss']
    return ["loss = model(**batch).loss"]


def loop(d):
    lines = ["for step in range(100):"]
    zero = "    optimizer.zero_grad()"
    if d["zero_grad"] == "before":
        lines.append(zero)
    accumulate = d["accumulate"]
    depth = "    "
    if accumulate > 1:
        lines.append(f"    for micro in range({accumulate}):")
        depth = "        "
    if d["data"] != "on the gpu":
        lines.append(depth + ("batch = next_batch()" if d["data"] == "pinned" else "batch = next(stream)"))
    body = forward(d)
    cast = {"autocast": "torch.bfloat16", "fp16 scaler": "torch.float16"}.get(d["precision"])
    if cast and d.get("parallel") != "fsdp":
        lines.append(depth + f'with torch.autocast("cuda", dtype={cast}):')
        lines += [depth + "    " + line for line in body]
    else:
        lines += [depth + line for line in body]
    divided = f"(loss / {accumulate})" if accumulate > 1 else "loss"
    scaler = d["precision"] == "fp16 scaler"
    lines.append(depth + (f"scaler.scale({divided}).backward()" if scaler else f"{divided}.backward()"))
    if d["clip"]:
        if scaler:
            lines.append("    scaler.unscale_(optimizer)")
        lines.append("    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)")
    lines += ["    scaler.step(optimizer)", "    scaler.update()"] if scaler else ["    optimizer.step()"]
    if d["scheduler"]:
        lines.append("    scheduler.step()")
    if d["zero_grad"] == "after":
        lines.append(zero)
    if d["log"] == "each step":
        lines.append("    last = loss.item()")
    elif d["log"] == "every 10":
        lines += ["    if step % 10 == 0:", "        print(step, loss.item())"]
    return lines


def forward_loop(d):
    lines = ["for _ in range(100):", '    with foretrace.region("step"), torch.no_grad():']
    depth = "        "
    if d["data"] != "on the gpu":
        lines.append(depth + ("batch = next_batch()" if d["data"] == "pinned" else "batch = next(stream)"))
    if d["precision"] == "autocast":
        lines.append(depth + 'with torch.autocast("cuda", dtype=torch.bfloat16):')
        depth += "    "
    return lines + [depth + line for line in forward(d)]


def decode_loop(d):
    lines = [f"prompt = torch.randint(1000, ({d['batch']}, {d['prompt']}), device=device)", "for _ in range(100):", '    with foretrace.region("step"), torch.no_grad():',
             "        cache = DynamicCache(config=model.config)",
             "        token = model(input_ids=prompt, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)"]
    if d["new_tokens"]:
        lines += [f"        for _ in range({d['new_tokens']}):",
                  "            token = model(input_ids=token, past_key_values=cache, use_cache=True).logits[:, -1:].argmax(-1)"]
    return lines
