"""The training step that a style is learned from: a model of transformers in a plain loop. Run by learn.py and prove.py under `foretrace capture`."""

import argparse
import contextlib
import os
import pickle

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from families import config_of

MARK = 3 * 7 * 11 * 13 * 17 * 512  # bytes of a tensor that parts the memory's history


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("family")
    parser.add_argument("sizes", help="L=2,H=256,...")
    parser.add_argument("--precision", choices=("bfloat16", "autocast"), default="bfloat16")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--optimizer", choices=("fused", "foreach"), default="fused")
    parser.add_argument("--clip", action="store_true")
    parser.add_argument("--memory", help="where to write the allocator's history")
    return parser.parse_args()


def main():
    a = arguments()
    sizes = {key: int(value) for key, value in (one.split("=") for one in a.sizes.split(","))}
    if a.memory:
        torch.cuda.memory._record_memory_history(context=None, stacks="python")
    config = AutoConfig.for_model(a.family, **config_of(a.family, sizes))
    wide = a.precision == "autocast"
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32 if wide else torch.bfloat16)
    if a.recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    step_model = model
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.distributed.init_process_group("nccl")
        step_model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **{a.optimizer: True})
    tokens = torch.randint(0, sizes["V"], (sizes["B"], sizes["S"]), device="cuda")
    autocast = torch.autocast("cuda", dtype=torch.bfloat16) if wide else contextlib.nullcontext()
    try:
        for i in range(12):
            def mark():
                if a.memory and i in (7, 8):
                    torch.empty(MARK, dtype=torch.uint8, device="cuda")
            mark()
            with autocast:
                loss = step_model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            mark()
            if a.clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            mark()
            optimizer.step()
            optimizer.zero_grad()
    finally:
        if a.memory:
            trace = [(e["action"], e["addr"], e["size"]) for e in torch.cuda.memory._snapshot()["device_traces"][0]]
            with open(a.memory, "wb") as file:
                pickle.dump(trace, file)


main()
