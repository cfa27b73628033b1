// The layers of the decoder: what PyTorch calls for each, forward, and on the tape for backward.
// The order within a node of autograd, and which casts autocast puts in, were read from profiled
// steps of PyTorch 2.11.
#include <string>
#include <utility>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {

void Decoder::norm(bool joins_residual) {
  using enum KernelKind;
  const bool rms = model_.rms_norm;
  const std::int64_t elements = norm_tokens_ * model_.hidden;
  out_.host(FrameworkWork::Forward);
  // Compiled, the sum with the branch before is in the norm's kernel, each way.
  const bool sums = step_.compiled && joins_residual;
  out_.kernel("norm", rms ? RmsNorm : LayerNorm, (sums ? 4 : 2) * elements * stream_);
  // In bfloat16 the linear layers save its result, for their weights' gradients (frozen ones have
  // none, and adapters save what they read); autocast makes copies for them instead.
  const std::int64_t kept = step_.holds_narrow() ? narrow_bytes(elements) : elements * stream_;
  const bool is_kept = !step_.autocasts() && !step_.is_frozen();
  const Memory::Id result = is_kept ? save(kept) : Memory::kNothing;
  on_backward([this, rms, elements, result, joins_residual, sums] {
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("norm_backward", rms ? RmsNormBackward : LayerNormBackward,
                (sums ? 4 : 3) * elements * stream_);
    memory_.free(result);
    if (!step_.is_frozen()) {
      out_.kernel("norm_weights", rms ? RmsNormWeights : LayerNormWeights, 2 * elements * stream_);
      for (std::int64_t i = 0; i < model_.norm_parts(); ++i) give_small(model_.hidden);
    }
    if (step_.sequence_parallel &&
        !step_.is_megatron_core()) {  // which adds all of them at the end
      collective("all_reduce", model_.hidden * kBf16);
    }
    if (!joins_residual || sums) return;
    pointwise("add_residual_gradient", 3 * elements * stream_, FrameworkWork::Backward);
  });
}

/// y (tokens x outputs) = x (tokens x inputs) * W^T; column-major: m = outputs, n = tokens.
void Decoder::linear(const char* id, std::int64_t inputs, std::int64_t outputs, bool cast_input,
                     bool is_biased) {
  const bool casts = step_.autocasts();
  const std::int64_t weights = inputs * outputs;
  const std::int64_t input = tokens_ * inputs;
  out_.host(FrameworkWork::Linear);
  call_of_dtensor();
  Memory::Id weight_copy = Memory::kNothing, input_copy = Memory::kNothing;
  if (casts) {
    if (is_biased) {
      out_.host(FrameworkWork::Autocast);
      out_.kernel("cast_bias", KernelKind::Narrow, outputs * (kBf16 + kF32));
    }
    out_.host(FrameworkWork::Autocast);
    out_.kernel("cast_weight", KernelKind::Narrow, weights * (kBf16 + kF32));
    weight_copy = save_weight_copy(weights * kBf16);
    if (cast_input) {
      out_.host(FrameworkWork::Autocast);
      out_.kernel("cast_input", KernelKind::Narrow, input * (kBf16 + kF32));
      input_copy = save(input * kBf16);
    }
  }
  const std::string name = id;
  const bool is_kept = is_kept_product(name);
  // PyTorch's checkpoint ends once all that was saved is there again; Megatron's runs to its end.
  // A norm behind the last product saves what that gives.
  const bool is_needed = !runs_again_ || name != "down" || !step_.is_eager() || model_.norms > 2;
  const bool is_shared = shares_gradient_;
  const bool sums_later = step_.tensor > 1 && (name == "output" || name == "down");
  const std::int64_t part = norm_tokens_ * model_.hidden * kBf16;
  const bool is_narrow = step_.is_narrow() && name != "head";
  const LinearSizes sizes{inputs, outputs, tokens_};
  const auto forward = [&] {
    if (!is_needed || (is_kept && runs_again_)) return;
    if (is_narrow) return narrow_forward(name, sizes);
    out_.forward_product(id, inputs, outputs, tokens_);
  };
  const std::int64_t gathered = is_narrow ? gathered_bytes(part) : part;
  if (splits_in_layers()) {
    sums_later ? beside("reduce_scatter", part, step_.overlaps_tensor, forward)
               : beside("all_gather", gathered, step_.overlaps_tensor, forward);
  } else {
    forward();
  }
  if (is_kept && !keeps_) {
    kept_.push_back(memory_.allocate(Part::Activations, tokens_ * outputs * kBf16));
  }
  adapt(name, sizes);
  const bool has_bias = is_biased && !sums_later && !step_.is_frozen();
  on_backward([this, name, inputs, outputs, casts, cast_input, weights, input, weight_copy,
               input_copy, is_shared, has_bias, sums_later, part, gathered, is_narrow, sizes] {
    const bool is_frozen = step_.is_frozen();
    const Memory::Id weight_gradient =
        memory_.allocate(Part::Temporary, is_frozen ? 0 : weights * kBf16);
    const Memory::Id input_gradient = memory_.allocate(Part::Temporary, input * kBf16);
    out_.host(FrameworkWork::Product);
    call_of_dtensor();
    if (is_narrow) narrow_gradient(name, sizes);
    const auto weights_product = [&] {
      if (is_frozen) return;
      if (is_narrow) return narrow_weights(name, sizes);
      out_.weights_product(name + "_weights", inputs, outputs, tokens_);
    };
    const auto inputs_product = [&] {
      if (is_narrow) return narrow_inputs(name, sizes);
      out_.inputs_product(name + "_inputs", inputs, outputs, tokens_);
    };
    if (splits_in_layers()) {
      // A column's input is gathered again, for its weights' gradient; a row's gradient is gathered
      // for both products.
      if (is_frozen && !sums_later) {
        inputs_product();
      } else {
        beside("all_gather", gathered, !sums_later || step_.overlaps_tensor, inputs_product);
      }
      if (sums_later) {
        weights_product();
      } else {
        beside("reduce_scatter_behind", part, true, weights_product);
      }
    } else {
      const bool weights_last = has_bias || is_narrow;
      if (!weights_last) weights_product();
      inputs_product();
      if (weights_last) weights_product();
    }
    if (has_bias) {
      out_.host(FrameworkWork::Backward);
      out_.kernel("bias_gradient", KernelKind::ColumnSum, tokens_ * outputs * kBf16);
    }
    memory_.free(weight_copy);
    memory_.free(input_copy);
    if (casts && cast_input) {
      out_.host(FrameworkWork::Backward);
      out_.kernel("widen_input_gradient", KernelKind::Widen, input * (kBf16 + kF32));
    }
    if (!is_frozen) give_gradient(weights, !is_shared);
    if (has_bias) give_gradient(outputs, true);
    memory_.free(weight_gradient);
    memory_.free(input_gradient);
  });
}

/// Where the ranks' parts of a product are summed, its bias is added behind the sum.
void Decoder::add_row_bias(bool is_biased) {
  if (step_.tensor == 1 || !is_biased) return;
  const std::int64_t bytes = norm_tokens_ * model_.hidden * kBf16;
  // Megatron adds bias and residual in one kernel.
  if (!step_.is_megatron()) pointwise("add_bias", 2 * bytes, FrameworkWork::Forward);
  on_backward([this, bytes] {
    out_.host(FrameworkWork::Backward);
    out_.kernel("bias_gradient", KernelKind::ColumnSum, bytes);
    if (step_.sequence_parallel &&
        !step_.is_megatron_core()) {  // which adds all of them at the end
      collective("all_reduce", model_.hidden * kBf16);
    }
    give_gradient(model_.hidden, true);
  });
}

/// torchtitan's policy (distributed/activation_checkpoint.py, _save_list) counts a block's
/// aten.mm, the first of which it keeps; one of float8 tensors is such. JAX's names what is kept.
bool Decoder::is_kept_product(const std::string& name) {
  if (name == "head") return false;
  if (step_.recompute == Recompute::Products) return products_++ % 2 == 0;
  const Kept& keeps = step_.keeps;
  const bool is_query = name == "query" || name == "key" || name == "value" || name == "qkv";
  return (keeps.queries && is_query) || (keeps.output && name == "output") ||
         (keeps.up && (name == "gate" || name == "up")) || (keeps.down && name == "down");
}

/// Several layers read the same input: its gradients are added.
void Decoder::add_input_gradients(std::int64_t count) {
  on_backward([this, count] {
    for (std::int64_t i = 0; i < count; ++i) {
      // Compiled, the norm's kernel reads them.
      pointwise("add_gradients", (step_.compiled ? 1 : 3) * tokens_ * model_.hidden * stream_,
                FrameworkWork::Backward);
    }
  });
}

void Decoder::drop_out(const char* id, std::int64_t elements, std::int64_t width) {
  if (!step_.dropout) return;
  pointwise(id, elements * (2 * width + 1), FrameworkWork::Forward);
  const Memory::Id mask = save(elements);
  on_backward([this, backward = std::string{id} + "_backward", elements, width, mask] {
    pointwise(backward.c_str(), elements * (2 * width + 1), FrameworkWork::Backward);
    memory_.free(mask);
  });
}

void Decoder::add_residual() {
  const std::int64_t elements = norm_tokens_ * model_.hidden;
  // Megatron's jit has it in the kernel that adds (bias_dropout_add), but for the mask.
  const bool is_fused = step_.dropout && step_.is_megatron();
  if (!is_fused) drop_out("dropout", elements, kBf16);
  const bool mixed = step_.autocasts();
  if (!step_.compiled || mixed) {
    out_.host(FrameworkWork::Forward);
    out_.kernel("residual", mixed ? KernelKind::Mixed : KernelKind::Pointwise,
                elements * (2 * stream_ + kBf16 + (is_fused ? 1 : 0)));
  }
  const Memory::Id mask = save(is_fused ? elements : 0);
  on_backward([this, elements, is_fused, mask] {
    if (is_fused) {
      pointwise("dropout_backward", elements * (2 * kBf16 + 1), FrameworkWork::Backward);
    }
    memory_.free(mask);
  });
  const Memory::Id result = save(elements * stream_);
  on_backward([this, elements, mixed, result] {
    memory_.free(result);
    if (!mixed) return;
    out_.host(FrameworkWork::Backward);
    out_.kernel("narrow_gradient", KernelKind::Narrow, elements * (kBf16 + kF32));
  });
}

void Decoder::activation(std::int64_t rows, std::int64_t ffn) {
  const std::int64_t bytes = rows * ffn * kBf16;
  const bool gated = model_.gated;
  const bool is_read = reads_input_again("down");
  if (fuses()) {  // one kernel each way, bias and gate in it
    const std::int64_t inputs = gated ? 2 : 1;
    pointwise("activation", (inputs + 1) * bytes, FrameworkWork::Forward);
    const bool is_narrow = step_.holds_narrow() && !step_.is_frozen();
    const std::int64_t kept = is_narrow ? narrow_bytes(rows * ffn) : bytes;
    const Memory::Id saved = save(inputs * bytes + (is_read ? kept : 0));
    on_backward([this, inputs, bytes, saved] {
      const Memory::Id gradients = memory_.allocate(Part::Temporary, inputs * bytes);
      pointwise("activation_backward", (2 * inputs + 1) * bytes, FrameworkWork::Backward);
      memory_.free(gradients);
      memory_.free(saved);
    });
    return;
  }
  pointwise("activation", 2 * bytes, FrameworkWork::Forward);
  if (model_.squares) {
    pointwise("square", 2 * bytes, FrameworkWork::Forward);
    on_backward(
        [this, bytes] { pointwise("square_backward", 3 * bytes, FrameworkWork::Backward); });
  }
  if (gated) pointwise("gate", 3 * bytes, FrameworkWork::Forward);
  // Gate, its activation, up and their product; else up and its activation.
  const Memory::Id saved = save((gated ? 4 : 2) * bytes - (is_read ? 0 : bytes));
  on_backward([this, bytes, gated, saved] {
    const Memory::Id gradients = memory_.allocate(Part::Temporary, (gated ? 2 : 1) * bytes);
    if (gated) {
      out_.host(FrameworkWork::Backward, 2);
      out_.kernel("gate_backward", KernelKind::Pointwise, 3 * bytes);
      out_.kernel("gate_backward", KernelKind::Pointwise, 3 * bytes);
    }
    pointwise("activation_backward", 3 * bytes, FrameworkWork::Backward);
    memory_.free(gradients);
    memory_.free(saved);
  });
}

void Decoder::feed_forward(std::int64_t ffn) {
  const bool is_joined = model_.gated && step_.is_megatron_core();
  enter_tensor_parallel(model_.gated && !is_joined ? 2 : 1);
  if (model_.gated && !is_joined) {
    add_input_gradients(1);
    linear("gate", model_.hidden, ffn, true, model_.has_mlp_bias());
  }
  linear("up", model_.hidden, is_joined ? 2 * ffn : ffn, true, model_.has_mlp_bias());
  activation(tokens_, ffn);
  linear("down", ffn, model_.hidden, false, model_.has_mlp_bias());
  out_.leave_out(ends_early_);
  leave_tensor_parallel();
}

/// Before the second branch: a norm of its own, or the first branch's, whose gradients are added.
void Decoder::branch_norm() {
  if (model_.norms > 1) return norm();
  add_input_gradients(1);
}

void Decoder::mlp_part() {
  branch_norm();
  // What follows "down" is not what PyTorch's checkpoint waits for.
  const bool is_checkpoint = runs_again_ && step_.framework == Framework::PyTorch;
  ends_early_ = is_checkpoint && model_.norms <= 2;
  feed_forward(model_.dense_width() / step_.tensor);
  add_row_bias(model_.has_mlp_bias());
  if (model_.norms > 2) norm(false);
  out_.leave_out(is_checkpoint);
  add_residual();
  out_.leave_out(false);
  ends_early_ = false;
}

}  // namespace foretrace::training
