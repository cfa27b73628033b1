// Attention as PyTorch calls it, from the norm before it to the product behind it: with a kernel
// of its own or without, forward and on the tape for backward.
#include <utility>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kTile = 128;  // tokens of attention's tiles, rows and columns

}  // namespace

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
    out_.product(id, rows, n * batch, k, Writer::Turned::Neither);
  };
  product("scores", rows, model_.head_dim);
  out_.host(FrameworkWork::Forward);
  out_.kernel("attention_softmax", Pointwise, 2 * scores);
  // What is left of the weights is saved beside them.
  const Memory::Id dropped = save(step_.dropout ? scores + scores / kBf16 : 0);
  if (step_.dropout) {
    pointwise("attention_dropout", 2 * scores + scores / kBf16, FrameworkWork::Forward);
  }
  product("mix", model_.head_dim, rows);
  pointwise("join_heads", 2 * tokens_ * q_ * kBf16, FrameworkWork::Forward);
  const Memory::Id saved = save(scores + tokens_ * q_ * kBf16);
  on_backward([this, rows, scores, product, saved, dropped] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, scores);
    product("mix_weights", rows, model_.head_dim);
    product("mix_values", model_.head_dim, rows);
    if (step_.dropout) {
      pointwise("attention_dropout_backward", 2 * scores + scores / kBf16, FrameworkWork::Backward);
    }
    memory_.free(dropped);
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

}  // namespace foretrace::training
