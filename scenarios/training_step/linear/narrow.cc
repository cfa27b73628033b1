// Linear layers whose operands have less than 16 bits: who casts them, and when.
// PyTorch: torch._scaled_mm and torchao's dynamic scaling, each operand cast where it is
// multiplied. Megatron-Core: Transformer Engine (pytorch/module/linear.py, layernorm_linear.py;
// quantizers of pytorch/tensor): an operand is cast once, by rows and by columns in one kernel, and
// kept so for the backward pass. Weights are cast once a step (is_first_microbatch).
#include <string>

#include "scenarios/program/product_type.h"
#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
namespace {

DataType narrow_type(Narrow narrow) {
  return narrow == Narrow::Nv4 ? DataType::Float4E2M1 : DataType::Float8E4M3;
}

Scales scales_of(Narrow narrow) {
  switch (narrow) {
    case Narrow::Rows:
      return Scales::Row;
    case Narrow::Mx8:
      return Scales::Mx;
    case Narrow::Nv4:
      return Scales::Nv;
    case Narrow::None:
    case Narrow::Float8:
    case Narrow::Delayed:
      break;
  }
  return Scales::Tensor;
}

}  // namespace

std::int64_t Decoder::narrow_bytes(std::int64_t elements) const {
  return bytes_of(elements, narrow_type(step_.narrow), scales_of(step_.narrow));
}

std::int64_t Decoder::gathered_bytes(std::int64_t bytes) const {
  return step_.holds_narrow() ? narrow_bytes(bytes / kBf16) : bytes;
}

/// Gradients have a type of more range where a tensor has one scale.
void Decoder::computes_narrow(bool is_gradient) {
  const Scales scales = scales_of(step_.narrow);
  const bool needs_range = is_gradient && scales == Scales::Tensor;
  out_.computes_in(needs_range ? DataType::Float8E5M2 : narrow_type(step_.narrow), scales);
}

/// Looks for the largest number where a scale needs it (a tensor's own, and float4's second one),
/// and writes so many copies.
void Decoder::cast(const std::string& id, std::int64_t elements, int copies, FrameworkWork work) {
  const Narrow narrow = step_.narrow;
  out_.host(work);
  // torchtitan's policy keeps aten.max: it is not looked for again.
  const bool is_kept = runs_again_ && step_.recompute == Recompute::Products;
  if ((narrow == Narrow::Float8 || narrow == Narrow::Nv4) && !is_kept) {
    out_.kernel("amax_" + id, KernelKind::ColumnSum, elements * kBf16);
  }
  out_.kernel("cast_" + id, KernelKind::Narrow, elements * kBf16 + copies * narrow_bytes(elements));
}

void Decoder::narrow_forward(const std::string& name, const LinearSizes& sizes) {
  const bool keeps = step_.holds_narrow();
  const std::int64_t written =
      narrow_bytes(sizes.input()) + (keeps ? 0 : narrow_bytes(sizes.weights()));
  const Memory::Id copies = memory_.allocate(Part::Temporary, written);
  // With a scale from before, the norm's kernel casts what it writes.
  const bool is_cast = step_.narrow == Narrow::Delayed && (name == "qkv" || name == "up");
  if (!keeps) {
    cast(name + "_input", sizes.input(), 1, FrameworkWork::Autocast);
    cast(name + "_weight", sizes.weights(), 1, FrameworkWork::Autocast);
  } else if (!is_cast) {
    cast(name + "_input", sizes.input(), 2, FrameworkWork::Backward);
  }
  if (keeps && name == "output" && !step_.is_frozen()) {  // which attention keeps in 16 bits, too
    const Memory::Id saved = save(narrow_bytes(sizes.input()));
    on_backward([this, saved] { memory_.free(saved); });
  }
  computes_narrow(false);
  out_.forward_product(name, sizes.inputs, sizes.outputs, sizes.tokens);
  out_.computes_in(half());
  memory_.free(copies);
}

/// Both ways in one kernel: by rows for the input's gradient, by columns for the weights'.
void Decoder::narrow_gradient(const std::string& name, const LinearSizes& sizes) {
  cast(name + "_gradient", sizes.gradient(), 2, FrameworkWork::Backward);
}

/// PyTorch turns weights and inputs into the other order with the scales that it has.
void Decoder::narrow_inputs(const std::string& name, const LinearSizes& sizes) {
  const std::int64_t weights = step_.holds_narrow() ? 0 : narrow_bytes(sizes.weights());
  const Memory::Id copies =
      memory_.allocate(Part::Temporary, 2 * narrow_bytes(sizes.gradient()) + weights);
  if (!step_.holds_narrow()) {
    out_.host(FrameworkWork::Backward);
    out_.kernel("turn_" + name + "_weight", KernelKind::Narrow, sizes.weights() * kBf16 + weights);
  }
  computes_narrow(true);
  out_.product(name + "_inputs", sizes.inputs, sizes.tokens, sizes.outputs, Writer::Turned::A);
  out_.computes_in(half());
  memory_.free(copies);
}

void Decoder::narrow_weights(const std::string& name, const LinearSizes& sizes) {
  const std::int64_t input = narrow_bytes(sizes.input());
  const Memory::Id copies =
      memory_.allocate(Part::Temporary, 2 * narrow_bytes(sizes.gradient()) + input);
  if (!step_.holds_narrow() || step_.narrow == Narrow::Delayed) {
    const std::int64_t read = step_.holds_narrow() ? input : sizes.input() * kBf16;
    out_.host(FrameworkWork::Backward);
    out_.kernel("turn_" + name + "_input", KernelKind::Narrow, read + input);
  }
  computes_narrow(true);
  out_.product(name + "_weights", sizes.inputs, sizes.outputs, sizes.tokens, Writer::Turned::A);
  out_.computes_in(half());
  memory_.free(copies);
}

/// Parameters without gradients. Transformer Engine makes those of linear layers in few bits alone
/// (quantized_model_init, which is for them); scales of blocks need a copy by columns, too
/// (MXFP8Tensor, NVFP4Tensor). One scale needs none where weights are turned anew each time
/// (Megatron-Core's disable_parameter_transpose_cache, as MLPerf's steps have).
std::int64_t Decoder::frozen_bytes() const {
  if (!step_.holds_narrow()) return held_ * kBf16;
  std::int64_t layers = 0;
  for (std::int64_t group = 0; group + 1 < groups(); ++group) layers += group_parameters(group);
  const bool has_blocks = step_.narrow == Narrow::Mx8 || step_.narrow == Narrow::Nv4;
  return (has_blocks ? 2 : 1) * narrow_bytes(layers) + (held_ - layers) * kBf16;
}

/// Those of all linear layers, once a step.
void Decoder::cast_held_weights() {
  if (!step_.holds_narrow()) return;
  for (std::int64_t group = 0; group + 1 < groups(); ++group) {
    cast("held_weights", group_parameters(group), 2, FrameworkWork::Parameter);
  }
}

}  // namespace foretrace::training
