#include "sim/applications/training/published_megatron.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

bool says(const CsvLine& line, std::string_view column, std::string_view what) {
  return line.text(column).find(what) != std::string_view::npos;
}

/// Returns whether the name is one of a family that is known.
bool describe_family(std::string_view name, training::TrainingStep& step) {
  std::string lower{name};
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  training::Architecture& model = step.model;
  model.gated = model.rms_norm = is("llama") || is("mixtral");
  if (is("gpt3")) {  // NeMo's: biases, learned positions, one embedding for both ends
    model.biases = model.joined_qkv = model.tied = true;
    model.positions = step.sequence;
  }
  // Nemotron: squared ReLU, LayerNorm, rotary positions, no biases.
  return model.gated || is("gpt3") || is("nemotron");
}

}  // namespace

bool is_megatron_core(const CsvLine& line) { return says(line, "framework", "Megatron-Core"); }

std::string what_does_not_divide(const training::TrainingStep& step, std::int64_t gpus) {
  if (step.processes() != gpus) return "degrees do not multiply to the GPUs";
  // Of Megatron-LM's stages the first ones have a layer more.
  const bool may_differ = step.ends_are_layers() || (step.is_megatron() && step.chunks == 1);
  if (step.model.layers % (step.pipeline * step.chunks) != 0 && !may_differ)
    return "stages of unequal layers";
  if (step.pipeline > 1 && step.chunks > 1 && step.passes % step.pipeline != 0)
    return "micro-batches in no whole turns";
  if (step.pipeline > 1 && step.passes < step.pipeline) return "fewer micro-batches than stages";
  if (auto problem = training::what_is_no_narrow_size(step)) return *std::move(problem);
  const bool splits = step.model.heads % step.tensor == 0 &&
                      step.model.kv_heads % step.tensor == 0 &&
                      step.sequence % (2 * step.context * step.tensor) == 0;
  return splits ? "" : "heads or sequences do not split";
}

training::Narrow narrow_of(const CsvLine& line) {
  using enum training::Narrow;
  if (says(line, "precision", "fp4")) return Nv4;
  if (says(line, "precision", "mxfp8")) return Mx8;
  if (!says(line, "precision", "fp8")) return None;
  if (says(line, "precision", "row")) return Rows;
  const bool is_delayed = is_megatron_core(line) && !says(line, "precision", "current");
  return is_delayed ? Delayed : Float8;
}

std::int64_t whole_number(const CsvLine& line, std::string_view column) {
  constexpr double kMost = 1e9;
  const double value = line.number(column);
  if (value < 0 || value > kMost || value != std::floor(value)) {
    throw UsageError{fmt::format("{}: {} is {}, not a whole number from 0 to {}", line.where(),
                                 column, line.text(column), kMost)};
  }
  return static_cast<std::int64_t>(value);
}

std::string describe_megatron(const CsvLine& line, training::TrainingStep& step) {
  if (says(line, "overlap_options", "offload")) return "activations that go to the host's memory";
  const auto degree = [&](std::string_view column) {
    constexpr std::int64_t kMost = 1 << 20;
    return std::clamp<std::int64_t>(whole_number(line, column), 1, kMost);
  };
  if (says(line, "model", "LoRA")) {
    // MLPerf's are of rank 16 beside both of attention's layers; NeMo's performance mode
    // (finetune_performance_optimizations) has `peft.dim = 8` beside queries, keys and values.
    const bool is_mlperf = says(line, "notes", "rank 16 on attention");
    step.adapters.rank = is_mlperf ? 16 : 8;
    step.adapters.output = is_mlperf;
  }
  if (!describe_family(line.text("model"), step)) {
    return fmt::format("model: {}", line.text("model"));
  }
  step.framework = training::Framework::MegatronCore;
  step.exchange = training::ContextExchange::SendRecv;
  step.fused_loss = true;
  step.tensor = degree("tp");
  step.context = degree("cp");
  step.pipeline = degree("pp");
  step.chunks = step.pipeline > 1 ? degree("vpp") : 1;
  step.data = degree("dp");
  step.narrow = narrow_of(line);
  if (line.has("experts") && line.number("experts") > 0) {
    step.model.experts = whole_number(line, "experts");
    step.model.top_k = degree("top_k");
    step.expert = degree("ep");
  }
  // Where tables say nothing, NeMo's and Megatron-Bridge's performance recipes split sequences,
  // overlap by user buffers, and reduce in 16 bits (`grad_reduce_in_fp32 = False`, before
  // `grad_sync_dtype: bf16`).
  step.sequence_parallel = step.tensor > 1 && !says(line, "sequence_parallel", "no");
  step.overlaps_tensor =
      step.sequence_parallel &&
      (line.text("overlap_options").empty() || says(line, "overlap_options", "tp_comm_overlap"));
  step.float32_reduce = false;
  if (step.replicas() > 1) {
    step.sharding = says(line, "zero_or_fsdp", "distributed") ? training::Sharding::Zero1
                    : says(line, "zero_or_fsdp", "fsdp")      ? training::Sharding::Fsdp
                                                              : training::Sharding::Ddp;
    // Megatron-FSDP scatters the gradients of every micro-batch (optim_grads_params).
    step.float32_parameters = step.reduce_every_pass = step.sharding == training::Sharding::Fsdp;
  }
  if (says(line, "recompute", "selective")) step.recompute = training::Recompute::Selective;
  if (line.number("kv_heads") > 0) step.model.kv_heads = whole_number(line, "kv_heads");
  // --make-vocab-size-divisible-by 128.
  const std::int64_t rows = 128 * step.tensor;
  step.model.vocab = (step.model.vocab + rows - 1) / rows * rows;
  step.passes = std::max<std::int64_t>(
      1, whole_number(line, "global_batch") / (step.micro_batch * step.data));
  if (step.model.experts > 0 &&
      (step.model.experts % step.expert != 0 || step.replicas() % step.expert != 0)) {
    return "experts do not split";
  }
  return what_does_not_divide(step, whole_number(line, "gpus"));
}

}  // namespace foretrace::sim
