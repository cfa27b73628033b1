// The layers of the decoder: what PyTorch calls for each, forward, and on the tape for backward.
// The order within a node of autograd, and which casts autocast puts in, were read from profiled
// steps of PyTorch 2.11.
#include <string>
#include <utility>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kBf16 = 2;  // bytes
constexpr std::int64_t kF32 = 4;
constexpr std::int64_t kTile = 128;  // tokens of attention's tiles, rows and columns

}  // namespace

void Decoder::norm(bool joins_residual) {
  using enum KernelKind;
  const bool rms = model_.rms_norm;
  const std::int64_t elements = norm_tokens_ * model_.hidden;
  out_.host(FrameworkWork::Forward);
  out_.kernel("norm", rms ? RmsNorm : LayerNorm, 2 * elements * stream_);
  // In bfloat16 the linear layers save its result; autocast makes copies for them instead.
  const Memory::Id result = step_.autocasts() ? Memory::kNothing : save(elements * stream_);
  on_backward([this, rms, elements, result, joins_residual] {
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("norm_backward", rms ? RmsNormBackward : LayerNormBackward, 3 * elements * stream_);
    out_.kernel("norm_weights", rms ? RmsNormWeights : LayerNormWeights, 2 * elements * stream_);
    memory_.free(result);
    const std::int64_t tensors = rms ? 1 : 2;
    for (std::int64_t i = 0; i < tensors; ++i) {
      out_.host(FrameworkWork::Accumulate);
      hooks_.gradient(model_.hidden);
    }
    if (step_.sequence_parallel &&
        !step_.is_megatron_core()) {  // which adds all of them at the end
      collective("all_reduce", model_.hidden * kBf16);
    }
    if (!joins_residual) return;
    pointwise("add_residual_gradient", 3 * elements * stream_, FrameworkWork::Backward);
  });
}

/// y (tokens x outputs) = x (tokens x inputs) * W^T; column-major: m = outputs, n = tokens.
void Decoder::linear(const char* id, std::int64_t inputs, std::int64_t outputs, bool cast_input) {
  const bool casts = step_.autocasts();
  const std::int64_t weights = inputs * outputs;
  const std::int64_t input = tokens_ * inputs;
  out_.host(FrameworkWork::Linear);
  call_of_dtensor();
  Memory::Id weight_copy = Memory::kNothing, input_copy = Memory::kNothing;
  if (casts) {
    if (model_.biases && outputs != vocab_) {
      out_.host(FrameworkWork::Autocast);
      out_.kernel("cast_bias", KernelKind::Narrow, outputs * (kBf16 + kF32));
    }
    out_.host(FrameworkWork::Autocast);
    out_.kernel("cast_weight", KernelKind::Narrow, weights * (kBf16 + kF32));
    weight_copy = save(weights * kBf16);
    if (cast_input) {
      out_.host(FrameworkWork::Autocast);
      out_.kernel("cast_input", KernelKind::Narrow, input * (kBf16 + kF32));
      input_copy = save(input * kBf16);
    }
  }
  const std::string name = id;
  // PyTorch's checkpoint ends once all that was saved is there again; Megatron's runs to its end.
  const bool is_needed = !runs_again_ || name != "down" || !step_.is_eager();
  const bool is_shared = shares_gradient_;
  const bool sums_later = step_.tensor > 1 && (name == "output" || name == "down");
  const std::int64_t part = norm_tokens_ * model_.hidden * kBf16;
  const auto forward = [&] {
    if (is_needed) out_.product(id, outputs, tokens_, inputs);
  };
  if (splits_in_layers()) {
    beside(sums_later ? "reduce_scatter" : "all_gather", part, step_.overlaps_tensor, forward);
  } else {
    forward();
  }
  const bool has_bias = model_.biases && outputs != vocab_ && !sums_later;
  on_backward([this, name, inputs, outputs, casts, cast_input, weights, input, weight_copy,
               input_copy, is_shared, has_bias, sums_later, part] {
    const Memory::Id weight_gradient = memory_.allocate(Part::Temporary, weights * kBf16);
    const Memory::Id input_gradient = memory_.allocate(Part::Temporary, input * kBf16);
    out_.host(FrameworkWork::Product);
    call_of_dtensor();
    const auto weights_product = [&] { out_.product(name + "_weights", inputs, outputs, tokens_); };
    const auto inputs_product = [&] { out_.product(name + "_inputs", inputs, tokens_, outputs); };
    if (splits_in_layers()) {
      // A column's input is gathered again; a row's gradient is gathered for both products.
      beside("all_gather", part, !sums_later || step_.overlaps_tensor, inputs_product);
      if (sums_later) {
        weights_product();
      } else {
        beside("reduce_scatter_behind", part, true, weights_product);
      }
    } else {
      if (!has_bias) weights_product();
      inputs_product();
      if (has_bias) weights_product();
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
    give_gradient(weights, !is_shared);
    if (has_bias) give_gradient(outputs, true);
    memory_.free(weight_gradient);
    memory_.free(input_gradient);
  });
}

/// Where the ranks' parts of a product are summed, its bias is added behind the sum.
void Decoder::add_row_bias() {
  if (step_.tensor == 1 || !model_.biases) return;
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

/// Several layers read the same input: its gradients are added.
void Decoder::add_input_gradients(std::int64_t count) {
  on_backward([this, count] {
    for (std::int64_t i = 0; i < count; ++i) {
      pointwise("add_gradients", 3 * tokens_ * model_.hidden * stream_, FrameworkWork::Backward);
    }
  });
}

void Decoder::add_residual() {
  const std::int64_t elements = norm_tokens_ * model_.hidden;
  out_.host(FrameworkWork::Forward);
  const bool mixed = step_.autocasts();
  out_.kernel("residual", mixed ? KernelKind::Mixed : KernelKind::Pointwise,
              elements * (2 * stream_ + kBf16));
  const Memory::Id result = save(elements * stream_);
  on_backward([this, elements, mixed, result] {
    memory_.free(result);
    if (!mixed) return;
    out_.host(FrameworkWork::Backward);
    out_.kernel("narrow_gradient", KernelKind::Narrow, elements * (kBf16 + kF32));
  });
}

/// mul, neg, cat, mul and add, as modules in Python write it; backward the same five. Megatron's is
/// one kernel.
void Decoder::rope(std::int64_t width) {
  const std::int64_t bytes = tokens_ * width * kBf16;
  if (step_.is_megatron_core()) {
    pointwise("rope", 2 * bytes, FrameworkWork::Forward);
    on_backward([this, bytes] { pointwise("rope", 2 * bytes, FrameworkWork::Backward); });
    return;
  }
  const auto five = [this, bytes](FrameworkWork work) {
    out_.host(work, 5);
    out_.kernel("rope", KernelKind::Strided, 2 * bytes);
    out_.kernel("rope", KernelKind::Strided, bytes);
    out_.kernel("rope", KernelKind::Concatenate, 2 * bytes);
    out_.kernel("rope", KernelKind::Strided, 2 * bytes);
    out_.kernel("rope", KernelKind::Strided, 3 * bytes);
  };
  five(FrameworkWork::Forward);
  on_backward([five] { five(FrameworkWork::Backward); });
}

Decoder::AttentionPart Decoder::causal_attention() const {
  const std::int64_t square = 4 * step_.micro_batch * q_ * step_.part();
  return {tokens_, tokens_, square * (step_.part() + 3 * kTile / 2) / 2,
          square * (step_.part() + 2 * kTile) / 4 * 5};
}

void Decoder::attend(const AttentionPart& part) {
  out_.host(FrameworkWork::Attention);
  out_.attention("attention", KernelKind::AttentionForward, part.forward_flops,
                 2 * (part.queries * q_ + part.keys * kv_) * kBf16, model_.head_dim);
}

void Decoder::attend_back(const AttentionPart& part) {
  const std::int64_t queries = part.queries * q_, keys = part.keys * q_;
  const Memory::Id gradients =
      memory_.allocate(Part::Temporary, (queries + 2 * keys) * kBf16 + queries * kF32);
  out_.host(FrameworkWork::AttentionBackward);
  out_.kernel("attention_dot", KernelKind::Pointwise, 2 * queries * kBf16);
  out_.attention("attention_backward", KernelKind::AttentionBackward, part.backward_flops,
                 4 * (queries + part.keys * kv_) * kBf16, model_.head_dim);
  out_.kernel("attention_narrow", KernelKind::Pointwise, queries * (kBf16 + kF32));
  if (kv_ < q_) {  // the heads of a group are added
    out_.kernel("attention_heads", KernelKind::Pointwise, (keys + part.keys * kv_) * kBf16);
    out_.kernel("attention_heads", KernelKind::Pointwise, (keys + part.keys * kv_) * kBf16);
  }
  memory_.free(gradients);
}

/// Attention without a kernel of its own: the products of all heads, the softmax of the whole
/// square in one pass over its scores.
void Decoder::unfused_attention() {
  using enum KernelKind;
  const std::int64_t rows = step_.sequence;
  const std::int64_t batch = step_.micro_batch * q_ / model_.head_dim;  // heads of all sequences
  const std::int64_t scores = batch * rows * rows * kBf16;
  const auto product = [this, rows, batch](const char* id, std::int64_t n, std::int64_t k) {
    out_.host(FrameworkWork::Product);
    out_.product(id, rows, n * batch, k);
  };
  product("scores", rows, model_.head_dim);
  out_.host(FrameworkWork::Forward);
  out_.kernel("attention_softmax", Pointwise, 2 * scores);
  product("mix", model_.head_dim, rows);
  pointwise("join_heads", 2 * tokens_ * q_ * kBf16, FrameworkWork::Forward);
  const Memory::Id saved = save(scores + tokens_ * q_ * kBf16);
  on_backward([this, rows, scores, product, saved] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, scores);
    product("mix_weights", rows, model_.head_dim);
    product("mix_values", model_.head_dim, rows);
    out_.host(FrameworkWork::Backward);
    out_.kernel("attention_softmax_backward", Pointwise, 3 * scores);
    product("scores_queries", model_.head_dim, rows);
    product("scores_keys", model_.head_dim, rows);
    memory_.free(gradient);
    memory_.free(saved);
  });
}

/// Rope and attention itself: what selective recomputation runs again.
void Decoder::core() {
  const bool rotates = model_.positions == 0;
  if (rotates) {
    rope(q_);
    rope(kv_);
  }
  if (!step_.flash_attention) return unfused_attention();
  const bool is_split = step_.context > 1;
  is_split ? ring_attention() : attend(causal_attention());
  const Memory::Id inputs = save(rotates ? tokens_ * (q_ + kv_) * kBf16 : 0);
  const Memory::Id result = save(tokens_ * q_ * kBf16 + tokens_ * q_ / model_.head_dim * kF32);
  on_backward([this, is_split, inputs, result] {
    is_split ? ring_attention_back() : attend_back(causal_attention());
    memory_.free(inputs);
    memory_.free(result);
  });
}

/// Views of the joined product, whose gradients are joined. Where heads share keys Megatron-Core's
/// SelfAttention.get_query_key_value_tensors copies the queries, which lie apart.
void Decoder::split_qkv() {
  if (step_.is_megatron_core() && kv_ < q_) {
    pointwise("join_heads", 2 * tokens_ * q_ * kBf16, FrameworkWork::Forward);
  }
  on_backward([this] {
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("join_gradients", KernelKind::Pointwise, 2 * tokens_ * (q_ + 2 * kv_) * kBf16);
  });
}

void Decoder::attention_part() {
  norm();
  const bool is_joined = model_.joined_qkv || step_.is_megatron_core();
  enter_tensor_parallel(is_joined ? 1 : 3);
  if (is_joined) {
    linear("qkv", model_.hidden, q_ + 2 * kv_, true);
    split_qkv();
  } else {
    add_input_gradients(2);
    linear("query", model_.hidden, q_, true);
    linear("key", model_.hidden, kv_, true);
    linear("value", model_.hidden, kv_, true);
  }
  const bool rotates = model_.positions == 0;
  const bool again = step_.recompute == Recompute::Selective;
  const Memory::Id saved = save(tokens_ * (rotates && !again ? kv_ : q_ + 2 * kv_) * kBf16);
  on_backward([this, saved] { memory_.free(saved); });
  if (again) {
    Tape nobody;
    Tape* const outer = std::exchange(tape_, &nobody);
    keeps_ = false;
    core();
    keeps_ = true;
    for (const Memory::Id id : std::exchange(unsaved_, {})) memory_.free(id);
    tape_ = outer;
    const Memory::Id mixed = save(tokens_ * q_ * kBf16);
    on_backward([this, mixed] {
      Tape tape;
      Tape* const before = std::exchange(tape_, &tape);
      out_.host(FrameworkWork::Recompute);
      core();
      run_back(tape);
      tape_ = before;
      memory_.free(mixed);
    });
  } else {
    core();
  }
  linear("output", q_, model_.hidden, false);
  leave_tensor_parallel();
  add_row_bias();
  add_residual();
}

void Decoder::activation(std::int64_t rows, std::int64_t ffn) {
  const std::int64_t bytes = rows * ffn * kBf16;
  const bool gated = model_.gated;
  if (step_.is_megatron_core()) {  // one kernel each way, bias and gate in it
    const std::int64_t inputs = gated ? 2 : 1;
    pointwise("activation", (inputs + 1) * bytes, FrameworkWork::Forward);
    const Memory::Id saved = save((inputs + 1) * bytes);
    on_backward([this, inputs, bytes, saved] {
      const Memory::Id gradients = memory_.allocate(Part::Temporary, inputs * bytes);
      pointwise("activation_backward", (2 * inputs + 1) * bytes, FrameworkWork::Backward);
      memory_.free(gradients);
      memory_.free(saved);
    });
    return;
  }
  pointwise("activation", 2 * bytes, FrameworkWork::Forward);
  if (gated) pointwise("gate", 3 * bytes, FrameworkWork::Forward);
  // Gate, its activation, up and their product; else up and its activation.
  const Memory::Id saved = save((gated ? 4 : 2) * bytes);
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
    linear("gate", model_.hidden, ffn, true);
  }
  linear("up", model_.hidden, is_joined ? 2 * ffn : ffn, true);
  activation(tokens_, ffn);
  linear("down", ffn, model_.hidden, false);
  leave_tensor_parallel();
}

void Decoder::mlp_part() {
  norm();
  feed_forward(ffn_);
  add_row_bias();
  add_residual();
}

}  // namespace foretrace::training
