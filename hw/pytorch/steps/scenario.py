"""A scenario's `training_step` as a configuration that train.py runs, and a configuration as a scenario. Needs no PyTorch.

What a step says comes as `foretrace print FILE --format json` writes it (reports/export/training_step_writer.h)."""

from program import ProgramError
from steps.configurations import Configuration

MIB = 1 << 20
FAMILY = "scenario"
SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")  # of a model
COUNTS = ("sequence", "micro", "passes", "data", "tensor", "pipeline")


def configuration_of(program):
    """The configuration of a program. Raises ProgramError that names all that train.py does not run."""
    step, file = program.document.get("training_step"), program.document["scenario"]["file"]
    if step is None:
        raise ProgramError(f"{file}: it says no 'training_step': train.py runs whole steps, measure.py operations. "
                           "'foretrace print FILE --format json' writes it for a file that has one")
    try:
        _check_counts(step, COUNTS)
        _check_counts(step["model"], SIZES)
        problems = list(_problems(program, step))
        if problems:
            raise ProgramError(f"{file}: train.py does not run {', '.join(problems)}; hw/pytorch/measure.py runs what "
                               "'foretrace print' expands")
        return _configuration(program.name, step)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ProgramError(f"{file}: no 'training_step' that 'foretrace print FILE --format json' writes "
                           f"({error!r})") from error


def _check_counts(values, keys):
    for key in keys:
        if not isinstance(values[key], int) or values[key] < 1:
            raise ValueError(f"{key!r} is {values[key]!r}")


def style_of(model):
    """gpt, llama, or None: model.py has no decoder of this kind."""
    kind = tuple(bool(model[key]) for key in ("gated", "rms_norm", "biases", "joined_qkv", "positions"))
    return {(True, True, False, False, False): "llama", (False, False, True, True, True): "gpt"}.get(kind)


def parallel_of(step):
    """none, ddp, fsdp, tp, pp, or None: several degrees at once, or a sharding that train.py has not."""
    degrees = {name: step[name] for name in ("data", "tensor", "pipeline") if step[name] > 1}
    if not degrees:
        return "none"
    if len(degrees) > 1:
        return None
    name, = degrees
    return {"tensor": "tp", "pipeline": "pp"}.get(name) or (step["sharding"] if step["sharding"] in ("ddp", "fsdp") else None)


def _problems(program, step):
    model, parallel = step["model"], parallel_of(step)
    if program.nodes > 1:
        yield f"on {program.nodes} nodes"
    fixed = {"framework": "pytorch", "loss": "separate", "attention": "flash", "flat": False, "context": 1, "virtual": 1,
             "expert": 1, "dropout": False}
    for key, value in fixed.items():
        if step[key] != value:
            yield f"'{key}: {str(step[key]).lower()}'"
    for trait in model.get("other", []):
        yield f"models with {trait}"
    if model["experts"]:
        yield "models with experts"
    elif style_of(model) is None:
        yield "decoders that are neither GPT-2's nor Llama's kind"
    if parallel is None:
        yield (f"data {step['data']} x tensor {step['tensor']} x pipeline {step['pipeline']} with "
               f"'sharding: {step['sharding']}'")
    if parallel in ("tp", "pp") and model["tied"]:
        yield "a tied embedding beside tensor or pipeline parallelism"
    if parallel == "pp" and (step["pipeline"] > 2 or step["schedule"] != "1f1b"):
        yield f"{step['pipeline']} pipeline stages by '{step['schedule']}' (two by '1f1b')"
    if parallel == "tp" and step["sequence"] % step["tensor"]:
        yield f"sequences of {step['sequence']} over {step['tensor']} ranks"
    if parallel == "ddp" and step["bucket_bytes"] % MIB:
        yield f"buckets of {step['bucket_bytes']} B (whole MiB)"


def _configuration(name, step):
    model, parallel = step["model"], parallel_of(step)
    style, passes = style_of(model), step["passes"]
    sizes = {key: model[key] for key in (*SIZES, "tied")}
    longer = style == "gpt" and model["positions"] != step["sequence"]
    return Configuration(
        id=name, family=FAMILY, style=style, **sizes, sequence=step["sequence"], micro_batch=step["micro"],
        positions=model["positions"] if longer else 0, accumulation=1 if parallel == "pp" else passes,
        microbatches=passes if parallel == "pp" else 1, parallel=parallel,
        processes=step["data"] * step["tensor"] * step["pipeline"],
        precision="amp" if step["parameters"] == "float32" else "bf16",
        reduce_dtype="fp32" if step["reduce"] == "float32" else "bf16", recompute=step["recompute"],
        optimizer="foreach" if step["optimizer"] == "adamw_foreach" else "fused",
        bucket_cap_mb=step["bucket_bytes"] // MIB or 25, gradient_as_bucket_view=step["bucket_views"],
        no_sync=not step["reduce_every_pass"], reshard_after_forward=step["reshard_after_forward"],
        return_outputs=step["return_outputs"], sequence_parallel=step["sequence_parallel"], loss_parallel=step["loss_parallel"])


def why_no_scenario(c):
    """What of a configuration no `training_step` says; empty where all is said."""
    if c.compile != "none":
        return "it is compiled"
    if c.precision not in ("amp", "bf16"):
        return f"its precision is {c.precision}"
    return "its modules are of another kind" if c.loss_chunks != 1 or c.norm != "module" else ""


def scenario_text(c):
    """The scenario of a configuration that `why_no_scenario` has nothing against: what `foretrace simulate` predicts."""
    flag = lambda value: str(bool(value)).lower()
    wide = "float32" if c.precision == "amp" else "bfloat16"
    positions = f", positions: {c.positions or c.sequence}" if c.style == "gpt" else ""
    degrees = {"tp": "tensor", "pp": "pipeline"}
    lines = [
        f"# A training step that hw/pytorch/train.py measures: {c.id}.", "schema_version: 1", f"name: {c.id}",
        f"processes: {c.ranks}", "training_step:",
        f"  model: {{style: {c.style}, layers: {c.layers}, hidden: {c.hidden}, heads: {c.heads}, kv_heads: {c.kv_heads}, "
        f"head_dim: {c.head_dim}, ffn: {c.ffn}, vocab: {c.vocab}, tied: {flag(c.tied)}{positions}}}",
        f"  batch: {{sequence: {c.sequence}, micro: {c.micro_batch}, passes: {max(c.accumulation, c.microbatches)}}}"]
    if c.parallel in degrees:
        lines.append(f"  parallel: {{{degrees[c.parallel]}: {c.ranks}, sequence: {flag(c.sequence_parallel)}, "
                     f"loss: {flag(c.loss_parallel)}}}")
    if not c.return_outputs:
        lines.append("  return_outputs: false")
    if c.parallel in ("ddp", "fsdp"):
        lines.append(f"  sharding: {c.parallel}")
    if c.parallel == "ddp":
        lines.append(f"  ddp: {{bucket: {c.bucket_cap_mb}MiB, views: {flag(c.gradient_as_bucket_view)}, "
                     f"reduce_every_pass: {flag(not c.no_sync)}}}")
    if c.parallel == "fsdp":
        lines += [f"  reshard_after_forward: {flag(c.reshard_after_forward)}",
                  f"  fsdp: {{reduce_every_pass: {flag(not c.no_sync)}}}"]
    reduce = "float32" if c.reduce_dtype == "fp32" else "bfloat16"
    lines += [f"  precision: {{parameters: {wide}, reduce: {reduce}}}", f"  recompute: {c.recompute}",
              f"  optimizer: {'adamw_foreach' if c.optimizer == 'foreach' else 'adamw'}"]
    return "\n".join(lines) + "\n"
