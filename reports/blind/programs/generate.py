"""Writes training scripts as other people write them: families of transformers, timm, torchvision and peft, settings drawn by a seed.

    python3 generate.py --seed 1 --count 40 -o DIRECTORY/            one GPU
    python3 generate.py --seed 1 --count 20 --gpus 2 -o DIRECTORY/   DDP, FSDP2, tensor parallel
    python3 generate.py --seed 3 --count 8 --infer -o DIRECTORY/     forward only, prefill, decoding with a cache

Each script is complete and runs by itself (torchrun starts those of several GPUs), under `python3 -m foretrace capture` and under `measure`. The same seed gives the same
scripts. DIRECTORY/programs.json lists them: name, file, family, kind, gpus, settings."""

import argparse
import json
import pathlib
import random

from families import CAUSAL, ENCODERS, HF_VISION, SEQ2SEQ, TIMM, TORCHVISION, cut
import pieces


def draw_causal(rng, gpus):
    family, config, shapes = rng.choice(CAUSAL)
    shape = cut(rng.choice(shapes), rng)
    seq = rng.choice([256, 512, 1024, 2048])
    batch = rng.choice([b for b in (1, 2, 4, 8, 16) if b * seq <= 8192])
    d = dict(kind="causal", family=family, config=config, shape=shape, seq=seq, batch=batch, **training(rng, gpus))
    d["attention"] = "eager" if seq <= 1024 and rng.random() < 0.15 else "sdpa"
    d["mask"] = rng.random() < 0.4
    d["lora"] = gpus == 1 and rng.random() < 0.2 and family in ("llama", "qwen2", "qwen3", "mistral", "phi3", "olmo2", "granite")
    d["loss"] = rng.choice(["labels", "labels", "own"])
    return d


def draw_encoder(rng, gpus):
    family, config, model, shapes = rng.choice(ENCODERS)
    seq = rng.choice([128, 256, 512])
    d = dict(kind="encoder", family=family, config=config, model=model, shape=cut(rng.choice(shapes), rng), seq=seq,
             batch=rng.choice([b for b in (8, 16, 32, 64) if b * seq <= 16384]), **training(rng, gpus))
    d["mask"] = rng.random() < 0.6
    d["checkpointing"] = False
    return d


def draw_seq2seq(rng, gpus):
    family, config, model, shapes = rng.choice(SEQ2SEQ)
    seq = rng.choice([256, 512])
    d = dict(kind="seq2seq", family=family, config=config, model=model, shape=cut(rng.choice(shapes), rng), seq=seq, target=rng.choice([64, 128, 256]),
             batch=rng.choice([4, 8, 16]), **training(rng, gpus))
    d["mask"] = rng.random() < 0.5
    return d


def draw_image(rng, gpus):
    source = rng.choice(["timm", "timm", "torchvision", "torchvision", "hf"])
    d = dict(kind="image", source=source, batch=rng.choice([16, 32, 64, 128]), **training(rng, gpus))
    if source == "hf":
        d["family"], d["config"], d["model"], d["shape"] = rng.choice(HF_VISION)
    else:
        d["family"] = rng.choice(TIMM if source == "timm" else TORCHVISION)
    d["channels_last"] = source != "hf" and rng.random() < 0.4
    d["checkpointing"] = False
    d["precision"] = rng.choice(["autocast", "autocast", "fp16 scaler", "fp32", "tf32"])
    d["optimizer"] = rng.choice(["sgd", "sgd", "adamw", "adamw fused"])
    return d


def draw_decode(rng, _gpus):
    family, config, shapes = rng.choice([c for c in CAUSAL if c[0] in ("llama", "qwen2", "qwen3", "mistral", "gpt2", "gpt_neox", "phi3", "olmo2")])
    return dict(kind="decode", family=family, config=config, shape=cut(rng.choice(shapes), rng), batch=rng.choice([1, 4, 16]), prompt=rng.choice([128, 512]),
                new_tokens=rng.choice([4, 8]), precision="bf16")


def draw_forward(rng, gpus):
    """A model that is asked, not trained: a forward pass without gradients."""
    d = rng.choice([draw_causal, draw_encoder, draw_image])(rng, gpus)
    d.update(infer=True, precision=rng.choice(["bf16", "autocast"]) if d["kind"] != "image" else "autocast", lora=False, checkpointing=False, accumulate=1)
    return d


def draw_prefill(rng, gpus):
    return dict(draw_decode(rng, gpus), prompt=rng.choice([512, 1024, 2048]), new_tokens=0)


def training(rng, gpus):
    """Settings that any training loop has."""
    return dict(
        precision=rng.choice(["bf16", "bf16", "autocast", "autocast", "fp32", "tf32"] if gpus == 1 else ["bf16", "autocast"]),
        optimizer=rng.choice(["adamw", "adamw", "adamw fused", "adamw fused", "adamw loop", "sgd", "adafactor"] if gpus == 1 else ["adamw", "adamw fused"]),
        checkpointing=rng.random() < 0.2, accumulate=rng.choice([1, 1, 1, 2, 4]), clip=rng.random() < 0.5, scheduler=rng.random() < 0.4,
        log=rng.choice(["never", "each step", "every 10"]), data=rng.choice(["on the gpu", "on the gpu", "pinned", "loader"]),
        zero_grad=rng.choice(["after", "before"]), parallel="none" if gpus == 1 else rng.choice(["ddp", "ddp", "fsdp", "fsdp", "tp"]))


INFERENCE = [(draw_forward, 3), (draw_prefill, 2), (draw_decode, 3)]
KINDS = [(draw_causal, 20), (draw_encoder, 6), (draw_seq2seq, 3), (draw_image, 10), (draw_decode, 3)]


def draw(rng, gpus, infer=False):
    kinds = INFERENCE if infer else KINDS if gpus == 1 else [(draw_causal, 14), (draw_encoder, 3), (draw_image, 4)]
    d = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0](rng, gpus)
    d["gpus"] = gpus
    if d.get("parallel") == "tp" and not (d["kind"] == "causal" and d["family"] in pieces.TENSOR_PARALLEL):
        d["parallel"] = "fsdp"
    if d.get("parallel") == "fsdp" and d["kind"] == "image":
        d["parallel"] = "ddp"
    if d.get("parallel") in ("fsdp", "tp"):
        d["accumulate"], d["optimizer"] = 1, "adamw"
    if d.get("parallel") == "tp":  # tensors and DTensors in one list are refused by clipping and by foreach
        d["clip"], d["optimizer"] = False, "adamw loop"
    if d.get("lora"):
        d["checkpointing"] = False
    return d


def programs(seed, count, gpus, compiled=False, infer=False):
    rng = random.Random(f"programs {seed} {gpus}" + (" compiled" if compiled else "") + (" infer" if infer else ""))
    drawn = []
    while len(drawn) < count:
        d = draw(rng, gpus, infer)
        if pieces.too_much(d) or (compiled and (d["kind"] == "decode" or d.get("checkpointing"))):
            continue
        d["compile"] = compiled
        kind = "forward" if d.get("infer") else "prefill" if d.get("new_tokens") == 0 else d["kind"]
        d["name"] = f"{seed:02d}_{gpus}gpu_{len(drawn):02d}_{d['family'].replace('.', '_')}_{kind}{'_compiled' if compiled else ''}"
        drawn.append(d)
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="models go through torch.compile")
    parser.add_argument("--infer", action="store_true", help="forward only, prefill and decoding")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    listed = programs(arguments.seed, arguments.count, arguments.gpus, arguments.compile, arguments.infer)
    for d in listed:
        d["file"] = d["name"] + ".py"
        (folder / d["file"]).write_text(pieces.script(d))
    (folder / "programs.json").write_text(json.dumps(listed, indent=1) + "\n")
    print(f"{len(listed)} scripts of {len({d['family'] for d in listed})} families in {folder}")


if __name__ == "__main__":
    main()
