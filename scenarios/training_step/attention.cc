// Attention as PyTorch calls it, from the norm before it to the product behind it: with a kernel
// of its own or without, forward and on the tape for backward.
#include <algorithm>
#include <string>
#include <utility>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kTile = 128;  // tokens of attention's tiles, rows and columns
constexpr const char* kJoinedQueries = "join_queries";
constexpr const char* kJoinedKeys = "join_keys";

}  // namespace

/// mul, neg, cat, mul and add, as modules in Python write it; backward the same five. Megatron's is
/// one kernel.
void Decoder::rope(std::int64_t width) {
  const std::int64_t bytes = tokens_ * width * kBf16;
  if (fuses()) {
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

/// Rotary positions of queries or keys: of their whole width, or of a part of each head, which is
/// put together with the rest.
void Decoder::rotate(std::int64_t width, const char* joined) {
  const Latent& latent = model_.latent;
  const bool is_latent = latent.keys > 0;
  const double share = is_latent
                           ? static_cast<double>(latent.rotary) /
                                 static_cast<double>(std::max<std::int64_t>(1, model_.head_dim))
                           : model_.rotary_share;
  // Latent keys share the rotated part: one for all heads.
  const bool is_shared = is_latent && joined == kJoinedKeys;
  const auto rotated =
      is_shared ? latent.rotary : static_cast<std::int64_t>(static_cast<double>(width) * share);
  if (rotated > 0) rope(rotated);
  if (rotated == width) return;
  const std::int64_t bytes = 2 * tokens_ * width * kBf16;
  out_.host(FrameworkWork::Forward);
  out_.kernel(joined, KernelKind::Concatenate, bytes);
  on_backward([this, bytes, joined] {
    out_.host(FrameworkWork::Backward);
    out_.kernel(joined, KernelKind::Concatenate, bytes);
  });
}

/// Of one direction's products: pairs of a query and a key that kernels of tiles look at.
Decoder::AttentionPart Decoder::causal_attention(const Layer& layer) const {
  constexpr std::int64_t kForward = 3 * kTile / 2, kBackward = 2 * kTile;
  if (layer.window == 0 && mixed_ == q_) {
    const std::int64_t square = 4 * step_.micro_batch * q_ * step_.part();
    return {tokens_, tokens_, square * (step_.part() + kForward) / 2,
            square * (step_.part() + kBackward) / 4 * 5};
  }
  const auto pairs = [&](std::int64_t excess) {
    return static_cast<double>(step_.micro_batch) * attended(layer, step_.part(), excess);
  };
  // Forward scores and their mix with values; backward scores again, and two gradients of each.
  const auto keys = static_cast<double>(2 * q_), values = static_cast<double>(2 * mixed_);
  return {tokens_, tokens_, static_cast<std::int64_t>(pairs(kForward) * (keys + values)),
          static_cast<std::int64_t>(pairs(kBackward) * (3 * keys + 2 * values))};
}

void Decoder::attend(const AttentionPart& part) {
  out_.host(FrameworkWork::Attention);
  out_.attention("attention", KernelKind::AttentionForward, part.forward_flops,
                 (part.queries * (q_ + mixed_) + part.keys * (kv_ + v_)) * kBf16, model_.head_dim);
}

void Decoder::attend_back(const AttentionPart& part) {
  const std::int64_t queries = part.queries * q_, keys = part.keys * q_;
  const std::int64_t values = part.keys * mixed_;
  const Memory::Id gradients =
      memory_.allocate(Part::Temporary, (queries + keys + values) * kBf16 + queries * kF32);
  out_.host(FrameworkWork::AttentionBackward);
  out_.kernel("attention_dot", KernelKind::Pointwise, 2 * part.queries * mixed_ * kBf16);
  out_.attention("attention_backward", KernelKind::AttentionBackward, part.backward_flops,
                 2 * (queries + part.queries * mixed_ + part.keys * (kv_ + v_)) * kBf16,
                 model_.head_dim);
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
  const std::int64_t mixed = model_.value_width();
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
  product("mix", mixed, rows);
  pointwise("join_heads", 2 * tokens_ * mixed_ * kBf16, FrameworkWork::Forward);
  const Memory::Id saved = save(scores + tokens_ * mixed_ * kBf16);
  on_backward([this, rows, mixed, scores, product, saved, dropped] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, scores);
    product("mix_weights", rows, mixed);
    product("mix_values", mixed, rows);
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

/// A norm of each head, or of all of them, in the products' type: its input is saved.
void Decoder::head_norm(const char* id, std::int64_t width, std::int64_t weights) {
  using enum KernelKind;
  const std::int64_t bytes = tokens_ * width * kBf16;
  out_.host(FrameworkWork::Forward);
  const bool rms = model_.rms_norm;
  out_.kernel(id, rms ? RmsNorm : LayerNorm, 2 * bytes);
  const Memory::Id saved = save(bytes);
  on_backward([this, bytes, weights, saved, rms, backward = std::string{id} + "_backward"] {
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel(backward, rms ? RmsNormBackward : LayerNormBackward, 3 * bytes);
    if (weights > 0) {
      out_.kernel(backward + "_weights", rms ? RmsNormWeights : LayerNormWeights, 2 * bytes);
      for (std::int64_t i = 0; i < model_.norm_parts(); ++i) give_small(weights);
    }
    memory_.free(saved);
  });
}

void Decoder::norm_heads() {
  if (model_.qk_norm == QkNorm::None) return;
  const auto weights = [this](std::int64_t width) {
    if (model_.qk_norm == QkNorm::Plain) return std::int64_t{0};
    return model_.qk_norm == QkNorm::Head ? model_.head_dim : width;
  };
  head_norm("query_norm", q_, weights(q_));
  head_norm("key_norm", kv_, weights(kv_));
}

/// Rope and attention itself: what selective recomputation runs again.
void Decoder::core() {
  const Layer layer = layer_;
  norm_heads();
  if (layer.rotates) {
    rotate(q_, kJoinedQueries);
    rotate(kv_, kJoinedKeys);
  }
  if (model_.sinks) on_backward([this] { give_small(model_.heads / step_.tensor); });
  if (!step_.flash_attention) return unfused_attention();
  const bool is_split = step_.context > 1;
  if (!keeps_attention() || !runs_again_) {
    is_split ? ring_attention() : attend(causal_attention(layer));
  }
  if (keeps_attention() && !keeps_) {
    kept_.push_back(memory_.allocate(Part::Activations, tokens_ * mixed_ * kBf16));
  }
  const Memory::Id inputs = save(layer.rotates ? tokens_ * (q_ + kv_) * kBf16 : 0);
  const Memory::Id result = save(tokens_ * mixed_ * kBf16 + tokens_ * q_ / model_.head_dim * kF32);
  on_backward([this, is_split, layer, inputs, result] {
    is_split ? ring_attention_back() : attend_back(causal_attention(layer));
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
    out_.kernel("join_gradients", KernelKind::Pointwise, 2 * tokens_ * (q_ + kv_ + v_) * kBf16);
  });
}

/// Queries, keys and values by way of short vectors, each with a norm of its own; the rotated part
/// of keys comes with their short vector. Every tensor parallel rank has the short ones whole.
void Decoder::latent_products() {
  const Latent& latent = model_.latent;
  const bool is_biased = model_.has_qkv_bias();
  add_input_gradients(1);
  if (latent.queries > 0) {
    linear("query_down", model_.hidden, latent.queries, true, is_biased);
    head_norm("query_down_norm", latent.queries, latent.queries);
    linear("query_up", latent.queries, q_, true, false);
  } else {
    linear("query", model_.hidden, q_, true, false);
  }
  linear("keys_down", model_.hidden, latent.keys + latent.rotary, true, is_biased);
  head_norm("keys_down_norm", latent.keys, latent.keys);
  const std::int64_t unrotated = model_.heads * (model_.head_dim - latent.rotary) / step_.tensor;
  linear("keys_up", latent.keys, unrotated + mixed_, true, false);
}

void Decoder::attention_part() {
  norm();
  const bool is_latent = model_.latent.keys > 0;
  const bool is_joined = !is_latent && (model_.joined_qkv || step_.is_megatron_core());
  const bool is_biased = model_.has_qkv_bias();
  enter_tensor_parallel(is_joined ? 1 : is_latent ? 2 : 3);
  if (is_latent) {
    latent_products();
  } else if (is_joined) {
    linear("qkv", model_.hidden, q_ + kv_ + v_, true, is_biased);
    split_qkv();
  } else {
    add_input_gradients(2);
    linear("query", model_.hidden, q_, true, is_biased);
    linear("key", model_.hidden, kv_, true, is_biased);
    linear("value", model_.hidden, v_, true, is_biased);
  }
  const bool again = step_.recompute == Recompute::Selective;
  const Memory::Id saved = save(tokens_ * (layer_.rotates && !again ? v_ : q_ + kv_ + v_) * kBf16);
  on_backward([this, saved] { memory_.free(saved); });
  if (again) {
    Tape nobody;
    Tape* const outer = std::exchange(tape_, &nobody);
    keeps_ = false;
    core();
    keeps_ = true;
    for (const Memory::Id id : std::exchange(unsaved_, {})) memory_.free(id);
    tape_ = outer;
    const Memory::Id mixed = save(tokens_ * mixed_ * kBf16);
    on_backward([this, mixed, layer = layer_] {
      layer_ = layer;
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
  linear("output", mixed_, model_.hidden, false, model_.has_output_bias());
  leave_tensor_parallel();
  add_row_bias(model_.has_output_bias());
  if (model_.norms > 2) norm(false);
  add_residual();
}

}  // namespace foretrace::training
