#include "scenarios/training_step/decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace foretrace::training {

Decoder::Decoder(const TrainingStep& step, const StageLayers& layers, Writer& out, Memory& memory,
                 Hooks& hooks)
    : step_{step},
      model_{step.model},
      layers_{layers},
      out_{out},
      memory_{memory},
      hooks_{hooks},
      stream_{step.autocasts() ? kF32 : kBf16},
      tokens_{step.tokens()},
      norm_tokens_{step.sequence_parallel ? step.tokens() / step.tensor : step.tokens()},
      q_{model_.q_width() / step.tensor},
      kv_{model_.kv_width() / step.tensor},
      v_{model_.kv_heads * model_.value_width() / step.tensor},
      mixed_{model_.heads * model_.value_width() / step.tensor},
      ffn_{model_.ffn / step.tensor},
      vocab_{model_.vocab / step.tensor} {
  out_.computes_in(half());
  experts_ = model_.experts / step.expert;
  rows_ = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(norm_tokens_ * model_.top_k) * step.expert_load));
  for (std::int64_t group = 0; group < groups(); ++group) {
    held_ += group_parameters(group);
    if (group + 1 == groups()) break;
    const Layer layer = layer_of(group);
    tensors_ += parameters_of(layer).tensors + (layer.has_experts ? expert_tensors() : 0);
  }
  const std::int64_t norm = model_.norm_parts();
  if (layers_.is_first) {
    tensors_ += (model_.positions > 0 ? 2 : 1) + (model_.embedding_norm ? norm : 0);
  }
  if (layers_.is_last) {
    tensors_ += norm + (model_.tied && layers_.is_first ? 0 : 1) + (model_.head_bias ? 1 : 0);
  }
}

/// Which of the model's layers a group of this stage is: chunks of a stage lie apart.
Layer Decoder::layer_of(std::int64_t group) const {
  if (step_.chunks == 1) return model_.layer(layers_.begin + group);
  std::int64_t chunk = step_.chunks - 1;
  while (first_of_chunk(chunk) > group) --chunk;
  const std::int64_t more = step_.ends_are_layers() ? 2 : 0;
  const std::int64_t each = (model_.layers + more) / (step_.pipeline * step_.chunks);
  // The embedding takes the place of the first chunk's first layer where it counts as one.
  const std::int64_t before = more > 0 && (chunk > 0 || layers_.stage > 0) ? 1 : 0;
  return model_.layer((chunk * step_.pipeline + layers_.stage) * each - before + group -
                      first_of_chunk(chunk));
}

LayerParameters Decoder::parameters_of(const Layer& layer) const {
  return layer_parameters(model_, layer, step_.tensor, experts_);
}

std::int64_t Decoder::group_parameters(std::int64_t group) const {
  if (group + 1 < groups()) return parameters_of(layer_of(group)).all();
  const std::int64_t norm = model_.hidden * model_.norm_parts();
  std::int64_t ends = 0;
  if (layers_.is_first) ends += vocab_ * model_.hidden + model_.positions * model_.hidden;
  if (layers_.is_first && model_.embedding_norm) ends += norm;
  if (layers_.is_last) ends += norm + (model_.head_bias ? vocab_ : 0);
  if (layers_.is_last && !(model_.tied && layers_.is_first)) ends += vocab_ * model_.hidden;
  return ends;
}

std::int64_t Decoder::block_experts() const { return parameters_of({.has_experts = true}).experts; }

std::int64_t Decoder::expert_tensors() const {
  const bool is_joined = step_.expert_products == ExpertProducts::Grouped;
  return model_.gates() * (is_joined ? 1 : experts_);
}

std::int64_t Decoder::group_experts(std::int64_t group) const {
  return group + 1 < groups() && layer_of(group).has_experts ? block_experts() : 0;
}

std::int64_t Decoder::held_experts() const {
  std::int64_t held = 0;
  for (std::int64_t group = 0; group < groups(); ++group) held += group_experts(group);
  return held;
}

Memory::Id Decoder::save(std::int64_t bytes) {
  const Memory::Id id = memory_.allocate(Part::Activations, bytes);
  if (!keeps_) unsaved_.push_back(id);
  return keeps_ ? id : Memory::kNothing;
}

Memory::Id Decoder::save_weight_copy(std::int64_t bytes) {
  if (keeps_) return save(bytes);
  weight_copies_.push_back(memory_.allocate(Part::Activations, bytes));
  return Memory::kNothing;
}

void Decoder::run_back(Tape& tape) {
  while (!tape.empty()) {
    const std::function<void()> last = std::move(tape.back());
    tape.pop_back();
    last();
  }
}

/// Of this stage's layers; of the chunk behind the last one their count.
std::int64_t Decoder::first_of_chunk(std::int64_t chunk) const {
  const std::int64_t layers = groups() - 1;
  if (!step_.ends_are_layers()) return chunk * (layers / step_.chunks);
  const std::int64_t each = (model_.layers + 2) / (step_.pipeline * step_.chunks);
  return std::clamp<std::int64_t>(chunk * each - (layers_.is_first ? 1 : 0), 0, layers);
}

void Decoder::forward(std::int64_t pass, std::int64_t chunk) {
  tape_ = &tapes_[pass * step_.chunks + chunk];
  const std::int64_t rest = groups() - 1;
  hooks_.before_forward(rest);
  on_backward([this, rest] { hooks_.after_backward(rest); });
  if (layers_.is_first && chunk == 0) {
    embed();
  } else {
    const Memory::Id received = save(stream_ * norm_tokens_ * model_.hidden);
    on_backward([this, received] { memory_.free(received); });
  }
  for (std::int64_t group = first_of_chunk(chunk); group < first_of_chunk(chunk + 1); ++group) {
    block(group);
  }
  if (layers_.is_last && chunk + 1 == step_.chunks) head_and_loss();
  for (const Memory::Id copy : std::exchange(weight_copies_, {})) memory_.free(copy);
  hooks_.after_forward(rest);
}

void Decoder::backward(std::int64_t pass, bool is_first, std::int64_t chunk) {
  accumulates_ = !is_first;
  hooks_.before_backward(groups() - 1);
  const Memory::Id gradient =
      memory_.allocate(Part::Temporary, stream_ * norm_tokens_ * model_.hidden);
  const auto tape = tapes_.find(pass * step_.chunks + chunk);
  tape_ = &tape->second;
  run_back(*tape_);
  tapes_.erase(tape);
  memory_.free(gradient);
  add_to_wide_gradients();
}

/// BF16_Optimizer.update_hp_grads (DeepSpeed 15293139, runtime/bf16_optimizer.py): for each
/// parameter a cast to a temporary and an addition. The 16-bit gradients were dropped before the
/// pass, so autograd adds to nothing.
void Decoder::add_to_wide_gradients() {
  for (const std::int64_t elements : std::exchange(narrow_gradients_, {})) {
    const Memory::Id wide = memory_.allocate(Part::Temporary, elements * kF32);
    out_.host(FrameworkWork::Parameter, 2);
    out_.kernel("widen_gradient", KernelKind::Widen, elements * (kBf16 + kF32));
    out_.kernel("add_gradient", KernelKind::Pointwise, 3 * elements * kF32);
    memory_.free(wide);
  }
}

void Decoder::skip(std::int64_t passes) {
  std::map<std::int64_t, Tape> moved;
  for (auto& [at, tape] : tapes_) moved.emplace(at + passes * step_.chunks, std::move(tape));
  tapes_ = std::move(moved);
  for (std::int64_t pass = 0; pass < passes && handed_out_ > 0; ++pass) {
    gradients_.push_back(memory_.allocate(Part::Temporary, handed_out_));
  }
}

void Decoder::block(std::int64_t group) {
  const Layer layer = layer_of(group);
  layer_ = layer;
  hooks_.before_forward(group);
  on_backward([this, group] { hooks_.after_backward(group); });
  if (!recomputes_block(group)) {
    block_forward();
  } else {
    const Memory::Id input = save(stream_ * norm_tokens_ * model_.hidden);
    Tape nobody;
    Tape* const outer = std::exchange(tape_, &nobody);
    out_.host(FrameworkWork::Recompute);
    keeps_ = false;
    products_ = 0;
    block_forward();
    keeps_ = true;
    for (const Memory::Id id : std::exchange(unsaved_, {})) memory_.free(id);
    tape_ = outer;
    on_backward([this, input, layer, kept = std::exchange(kept_, {})] {
      layer_ = layer;
      Tape again;
      Tape* const before = std::exchange(tape_, &again);
      out_.host(FrameworkWork::Recompute);
      runs_again_ = true;
      products_ = 0;
      for (const Memory::Id id : kept) memory_.free(id);  // counted by who saves them
      block_forward();
      runs_again_ = false;
      run_back(again);
      tape_ = before;
      memory_.free(input);
    });
  }
  hooks_.after_forward(group);
  on_backward([this, group] { hooks_.before_backward(group); });
}

void Decoder::block_forward() {
  attention_part();
  layer_.has_experts ? experts_part() : mlp_part();
}

void Decoder::update() {
  const bool is_shared = step_.sharding >= Sharding::Zero1;
  const std::int64_t experts = step_.is_frozen() ? 0 : held_experts();
  const std::int64_t elements = (trained_parameters() - experts) / (step_.is_hybrid() ? step_.shard
                                                                    : is_shared ? step_.replicas()
                                                                                : 1) +
                                experts / (is_shared ? step_.expert_data() : 1);
  // Megatron's is of float32 copies of the parameters.
  const bool is_wide = step_.float32_parameters || step_.is_megatron();
  const std::int64_t parameter = is_wide ? kF32 : kBf16;
  constexpr std::int64_t kInOneKernel = 320LL * 65536;  // blocks of a launch, elements of a block
  out_.host(FrameworkWork::Optimizer);
  if (step_.is_megatron_core()) {
    // The norm; then parameter, both moments, gradient in float32, and the parameter in bfloat16.
    out_.kernel("gradient_norm", KernelKind::Pointwise, elements * kF32);
    for (std::int64_t done = 0; done < elements; done += kInOneKernel) {
      const std::int64_t here = std::min(kInOneKernel, elements - done);
      out_.kernel("adamw", KernelKind::Optimizer, here * (7 * kF32 + kBf16));
    }
    for (const Memory::Id id : std::exchange(gradients_, {})) memory_.free(id);
    cast_held_weights();
    return;
  }
  if (step_.float16) {  // GradScaler: one kernel over all gradients, and the scale's own
    out_.host(FrameworkWork::Optimizer);
    out_.kernel("unscale_gradients", KernelKind::Pointwise, 2 * elements * parameter);
    out_.kernel("update_scale", KernelKind::Pointwise, 4 * kF32);
  }
  // Sharded parameters are DTensors, whose every operation is dispatched twice.
  const bool wraps = step_.tensor > 1 || step_.sharding == Sharding::Fsdp;
  out_.host(FrameworkWork::Parameter, wraps ? 4 * tensors_ : tensors_);
  out_.kernel("count_steps", KernelKind::Pointwise, tensors_ * kF32);
  // Reads parameter, gradient and both moments, writes all but the gradient. Without the fused
  // kernel every array passes the memory about twice.
  const std::int64_t passes = step_.optimizer == OptimizerKernel::Fused ? 7 : 19;
  for (std::int64_t done = 0; done < elements; done += kInOneKernel) {
    const std::int64_t here = std::min(kInOneKernel, elements - done);
    out_.kernel("adamw", is_wide ? KernelKind::Optimizer : KernelKind::OptimizerHalf,
                here * parameter * passes);
  }
  for (const Memory::Id id : std::exchange(gradients_, {})) memory_.free(id);
}

void Decoder::pointwise(const char* id, std::int64_t bytes, FrameworkWork work) {
  out_.host(work);
  out_.kernel(id, KernelKind::Pointwise, bytes);
}

/// Of a norm or of something as small, in its parameter's type.
void Decoder::give_small(std::int64_t elements) {
  if (step_.is_frozen()) return;
  out_.host(FrameworkWork::Accumulate);
  hooks_.gradient(elements);
}

/// A gradient in bfloat16 from the products becomes the parameter's: cast where parameters are
/// float32, added where one is there.
void Decoder::give_gradient(std::int64_t elements, bool is_complete, bool is_expert) {
  const bool sharded = step_.sharding == Sharding::Fsdp;
  if (step_.autocasts()) {
    out_.host(FrameworkWork::Backward);
    out_.kernel("widen_gradient", KernelKind::Widen, elements * (kBf16 + kF32));
  }
  const std::int64_t bytes = step_.autocasts() ? kF32 : kBf16;
  out_.host(FrameworkWork::Accumulate);
  if (step_.adds_wide_gradients()) narrow_gradients_.push_back(elements);
  if (step_.is_megatron_core() || (step_.adds_wide_gradients() && accumulates_)) {
    // The product adds to the gradient, which lives as long as the parameters; or one of the pass
    // before makes room for this one.
  } else if (accumulates_ && !sharded) {
    out_.kernel("accumulate", KernelKind::Pointwise, 3 * elements * bytes);
  } else if (!sharded) {
    gradients_.push_back(memory_.allocate(Part::Gradients, elements * bytes));
  }
  if (!is_complete) return;
  is_expert ? hooks_.expert_gradient(elements) : hooks_.gradient(elements);
}

}  // namespace foretrace::training
