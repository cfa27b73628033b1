"""From a configuration to a training step: how the model is spread over the GPUs, and what a step calls."""

import contextlib

import torch
from torch import nn

from model import Decoder, token_loss


def bfloat16(device):
    """float32 in trials on the CPU: gloo sends no bfloat16."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def make_model(c, device, begin=0, end=None):
    with torch.device(device):
        return Decoder(c, device, begin, end).to(bfloat16(device) if c.precision == "bf16" else torch.float32)


def with_compile(model, c):
    if c.compile == "model":
        model.compile()
    elif c.compile == "blocks":
        for layer in model.layers:
            layer.compile()
    return model


def with_ddp(model, c, device):
    on_gpu = device.type == "cuda"
    return nn.parallel.DistributedDataParallel(
        model, device_ids=[device.index] if on_gpu else None, bucket_cap_mb=c.bucket_cap_mb,
        gradient_as_bucket_view=c.gradient_as_bucket_view)


def with_fsdp(model, c, device):
    """FSDP2: one group for each block, one for the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(device.type, (c.ranks,))
    reduce = bfloat16(device) if c.reduce_dtype == "bf16" else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=bfloat16(device), reduce_dtype=reduce)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=c.reshard_after_forward)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    return model


def with_tensor_parallel(model, c, device):
    """Megatron's split of each block: columns, then rows; norms along the sequence where that is asked for."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                                   SequenceParallel, parallelize_module)

    mesh = init_device_mesh(device.type, (c.ranks,))
    between = Shard(1) if c.sequence_parallel else Replicate()
    plan = {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
            "head": ColwiseParallel(input_layouts=between,
                                    output_layouts=Shard(-1) if c.loss_parallel else Replicate(),
                                    use_local_output=not c.loss_parallel)}
    block = {name: ColwiseParallel() for name in ("attention.q", "attention.k", "attention.v", "attention.qkv",
                                                  "ffn.gate", "ffn.up")}
    block |= {name: RowwiseParallel(output_layouts=between) for name in ("attention.out", "ffn.down")}
    if c.sequence_parallel:
        plan["norm"] = SequenceParallel()
        for part in ("attention", "ffn"):
            block[f"{part}_norm"] = SequenceParallel()
            block[part] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        # Learned positions are added to a rank's share of the sequence. Each rank trains its own rows.
        model.place = model.place.chunk(c.ranks)[mesh.get_local_rank()]
    for layer in model.layers:
        parallelize_module(layer, mesh, block)
    return parallelize_module(model, mesh, plan)


def make_optimizer(model, c):
    """AdamW. Fused and foreach kernels take no mixture of DTensors and tensors: a group for each."""
    from torch.distributed.tensor import DTensor

    groups = {}
    for parameter in model.parameters():
        groups.setdefault(isinstance(parameter, DTensor), []).append(parameter)
    return torch.optim.AdamW([{"params": group} for group in groups.values()], lr=1e-4, weight_decay=0.1,
                             **{c.optimizer: True})


def random_batches(c, device, count):
    """`count` pairs of tokens and labels, on the GPU before anything is timed."""
    generator = torch.Generator(device=device).manual_seed(1)
    shape = (count, 2, c.micro_batch, c.sequence)
    return [tuple(pair) for pair in torch.randint(c.vocab, shape, device=device, generator=generator)]


class Step:
    """A training step; `note(name)` is called when the calls of a phase have returned."""

    def __init__(self, c, device):
        self.c, self.device = c, device
        model = with_compile(make_model(c, device), c)
        if c.parallel == "ddp":
            model = with_ddp(model, c, device)
        elif c.parallel == "fsdp":
            model = with_fsdp(model, c, device)
        elif c.parallel == "tp":
            model = with_tensor_parallel(model, c, device)
        self.model, self.optimizer = model, make_optimizer(model, c)
        self.batches = random_batches(c, device, c.accumulation)

    def forward_context(self):
        if self.c.precision == "amp" and self.c.parallel != "fsdp":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def backward_context(self):
        if self.c.loss_parallel:
            from torch.distributed.tensor.parallel import loss_parallel
            return loss_parallel()
        return contextlib.nullcontext()

    def sync_context(self, last):
        """Gradients are reduced in the last pass of an accumulation only."""
        if last or not self.c.no_sync:
            if self.c.parallel == "fsdp":
                self.model.set_requires_gradient_sync(True)
        elif self.c.parallel == "ddp":
            return self.model.no_sync()
        elif self.c.parallel == "fsdp":
            self.model.set_requires_gradient_sync(False)
        return contextlib.nullcontext()

    def run(self, note=lambda name: None):
        for index, (tokens, labels) in enumerate(self.batches):
            with self.sync_context(index + 1 == len(self.batches)), self.backward_context():
                with self.forward_context():
                    loss = self.model(tokens, labels)
                note("forward")
                (loss / len(self.batches) if len(self.batches) > 1 else loss).backward()
                note("backward")
        self.finish(note)
        return loss.detach()

    def finish(self, note):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        note("optimizer")


class PipelineStep(Step):
    """Two stages with torch.distributed.pipelining's 1F1B; forward and backward are not told apart."""

    def __init__(self, c, device, rank):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        self.c, self.device, self.rank = c, device, rank
        half = c.layers // 2
        self.model = make_model(c, device, *((0, half) if rank == 0 else (half, c.layers)))
        self.optimizer = make_optimizer(self.model, c)
        batches = random_batches(c, device, c.microbatches)
        self.tokens, self.labels = (torch.cat(part) for part in zip(*batches))
        stage = PipelineStage(self.model, rank, 2, device)
        self.schedule = Schedule1F1B(stage, n_microbatches=c.microbatches, loss_fn=token_loss)

    def run(self, note=lambda name: None):
        losses = []
        outputs = {} if self.c.return_outputs else {"return_outputs": False}  # PyTorch 2.10
        with self.forward_context():
            if self.rank == 0:
                self.schedule.step(self.tokens, **outputs)
            else:
                self.schedule.step(target=self.labels, losses=losses, **outputs)
        note("forward_backward")
        self.finish(note)
        return losses[-1].detach() if losses else None


def make_step(c, device, rank):
    return PipelineStep(c, device, rank) if c.parallel == "pp" else Step(c, device)
