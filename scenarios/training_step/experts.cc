// A layer whose feed-forward network is many experts, of which each token goes to a few:
// Megatron-LM's order (megatron/core/transformer/moe: router, alltoall token dispatcher, experts).
// Assumed, since no step of this kind was measured here: the counts of small calls, and that a
// grouped product is one product over the rows of all experts, each filled up to whole tiles.
#include <string>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kRouting = 12;   // calls: softmax, top-k, normalisation, counts, order
constexpr std::int64_t kRowTile = 128;  // rows of a grouped product's tile
constexpr std::int64_t kNarrowRows = 32;

}  // namespace

/// Scores for each expert, the best of them, and how many rows each expert gets.
void Decoder::route() {
  const std::int64_t scores = norm_tokens_ * model_.experts;
  const std::int64_t weights = model_.hidden * model_.experts;
  out_.host(FrameworkWork::Linear);
  out_.forward_product("router", model_.hidden, model_.experts, norm_tokens_);
  out_.host(FrameworkWork::Forward, kRouting);
  out_.kernel("router_softmax", KernelKind::Softmax, 2 * scores * kF32);
  out_.kernel("router_best", KernelKind::Pointwise, 2 * scores * kF32);
  out_.kernel("router_order", KernelKind::Pointwise, 4 * rows_ * kF32);
  const Memory::Id saved = save(scores * kF32 + rows_ * 3 * kF32);
  on_backward([this, scores, weights, saved] {
    out_.host(FrameworkWork::Backward, 3);
    out_.kernel("router_softmax_backward", KernelKind::SoftmaxBackward, 3 * scores * kF32);
    out_.host(FrameworkWork::Product);
    out_.weights_product("router_weights", model_.hidden, model_.experts, norm_tokens_);
    out_.inputs_product("router_inputs", model_.hidden, model_.experts, norm_tokens_);
    memory_.free(saved);
    give_gradient(weights, true);
    if (model_.expert_bias) give_gradient(model_.experts, true);
  });
  // Where rows are not padded to a capacity the host asks the GPU how many there are.
  if (step_.has_capacity) return;
  out_.needs(kF32, 0);
  out_.read_scalar("part");
}

/// Every process of the group sends the others the rows of their experts, evenly.
void Decoder::exchange_rows() {
  if (step_.expert == 1) return;
  const std::int64_t each = rows_ / step_.expert * model_.hidden * kBf16;
  out_.host(FrameworkWork::Collective);
  out_.needs_own("sent_rows", each * step_.expert);
  out_.needs_own("received_rows", each * step_.expert);
  const std::string group = out_.group("expert_parallel");
  out_.collective({.kind = CollectiveKind::AllToAll,
                   .id = "exchange_rows",
                   .group = group,
                   .input = "sent_rows",
                   .output = "received_rows",
                   .bytes = each});
}

/// A copy of each token for each of its experts, in their order, to those who hold them.
void Decoder::send_rows(FrameworkWork work) {
  const std::int64_t bytes = rows_ * model_.hidden * kBf16;
  out_.host(work, 2);
  out_.kernel("sort_rows", KernelKind::Gather, 2 * bytes);
  exchange_rows();
  if (step_.expert > 1 && experts_ > 1) {  // what came from each peer, expert by expert
    out_.host(work, 2);
    out_.kernel("sort_rows", KernelKind::Gather, 2 * bytes);
  }
  if (step_.tensor > 1) collective("all_gather", bytes, "", false);  // rows
}

/// The way back: each token is the sum of its rows.
void Decoder::bring_rows(FrameworkWork work) {
  const std::int64_t bytes = rows_ * model_.hidden * kBf16;
  if (step_.tensor > 1) collective("reduce_scatter", bytes, "", false);
  if (step_.expert > 1 && experts_ > 1) {
    out_.host(work, 2);
    out_.kernel("sort_rows", KernelKind::Gather, 2 * bytes);
  }
  exchange_rows();
  out_.host(work, 2);
  out_.kernel("sum_rows", KernelKind::Gather, bytes + norm_tokens_ * model_.hidden * kBf16);
}

void Decoder::expert_forward(std::int64_t rows, std::int64_t times) {
  const std::int64_t wide = rows * ffn_ * kBf16;
  const auto narrow = [&](const char* id, std::int64_t width) {
    if (!step_.is_narrow()) return;
    cast(id, rows * width, 2, FrameworkWork::Forward);
    computes_narrow(false);
  };
  out_.repeat(times, 1, [&] {
    narrow("expert_input", model_.hidden);
    if (model_.gated) {
      out_.host(FrameworkWork::Linear);
      out_.forward_product("expert_gate", model_.hidden, ffn_, rows);
    }
    out_.host(FrameworkWork::Linear);
    out_.forward_product("expert_up", model_.hidden, ffn_, rows);
    pointwise("expert_activation", 2 * wide, FrameworkWork::Forward);
    if (model_.gated) pointwise("expert_product", 3 * wide, FrameworkWork::Forward);
    narrow("expert_product", ffn_);
    out_.host(FrameworkWork::Linear);
    out_.forward_product("expert_down", ffn_, model_.hidden, rows);
    out_.computes_in(half());
  });
}

void Decoder::expert_backward(std::int64_t rows, std::int64_t times) {
  const std::int64_t wide = rows * ffn_ * kBf16;
  const auto both = [&](const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    if (step_.is_narrow()) {
      cast(name + "_gradient", rows * outputs, 2, FrameworkWork::Backward);
      computes_narrow(true);
    }
    out_.host(FrameworkWork::Product);
    out_.weights_product(name + "_weights", inputs, outputs, rows);
    out_.inputs_product(name + "_inputs", inputs, outputs, rows);
    out_.computes_in(half());
  };
  out_.repeat(times, 1, [&] {
    both("expert_down", ffn_, model_.hidden);
    for (int i = 0; i < 2 && model_.gated; ++i) {
      pointwise("expert_product_backward", 3 * wide, FrameworkWork::Backward);
    }
    pointwise("expert_activation_backward", 3 * wide, FrameworkWork::Backward);
    both("expert_up", model_.hidden, ffn_);
    if (!model_.gated) return;
    both("expert_gate", model_.hidden, ffn_);
    pointwise("expert_add_gradients", 3 * rows * model_.hidden * kBf16, FrameworkWork::Backward);
  });
}

void Decoder::expert_products() {
  const bool grouped = step_.expert_products == ExpertProducts::Grouped;
  const std::int64_t all = rows_ * step_.tensor;  // of the tensor parallel neighbours, too
  const std::int64_t even = (all + experts_ - 1) / experts_;
  // Of Transformer Engine's modules, too (Fp8Padding): whole blocks of mxfp8.
  const std::int64_t each =
      step_.is_narrow() ? (even + kNarrowRows - 1) / kNarrowRows * kNarrowRows : even;
  const std::int64_t rows = grouped ? (each + kRowTile - 1) / kRowTile * kRowTile * experts_ : each;
  const std::int64_t times = grouped ? 1 : experts_;
  const std::int64_t tensors = expert_tensors();
  const std::int64_t weights = block_experts() / tensors;
  Memory::Id copies = Memory::kNothing;
  if (step_.autocasts()) {
    out_.repeat(tensors, 1, [&] {
      out_.host(FrameworkWork::Autocast);
      out_.kernel("cast_expert", KernelKind::Narrow, weights * (kBf16 + kF32));
    });
    copies = save(block_experts() * kBf16);
  }
  expert_forward(rows, times);
  const Memory::Id inputs = save(all * model_.hidden * kBf16);
  // Gate, its activation, up and their product; else up and its activation.
  const Memory::Id inner = save((model_.gated ? 4 : 2) * all * ffn_ * kBf16);
  on_backward([this, all, rows, times, tensors, weights, copies, inputs, inner] {
    const Memory::Id gradients =
        memory_.allocate(Part::Temporary, (all * model_.hidden + 2 * all * ffn_ + weights) * kBf16);
    expert_backward(rows, times);
    for (const Memory::Id id : {copies, inputs, inner}) memory_.free(id);
    for (std::int64_t i = 0; i < tensors; ++i) give_gradient(weights, true, true);
    memory_.free(gradients);
  });
}

/// A number for each token, its sigmoid, and the shared expert's result times that.
void Decoder::gate_shared() {
  const std::int64_t bytes = norm_tokens_ * model_.hidden * kBf16;
  out_.host(FrameworkWork::Linear);
  out_.forward_product("shared_gate", model_.hidden, 1, norm_tokens_);
  out_.host(FrameworkWork::Forward, 2);
  out_.kernel("weigh_shared", KernelKind::Pointwise, 2 * bytes);
  const Memory::Id saved = save(bytes);
  on_backward([this, bytes, saved] {
    out_.host(FrameworkWork::Backward, 3);
    out_.kernel("weigh_shared", KernelKind::Pointwise, 2 * bytes);
    out_.kernel("shared_gate_gradient", KernelKind::Pointwise, 2 * bytes);
    out_.host(FrameworkWork::Product);
    out_.weights_product("shared_gate_weights", model_.hidden, 1, norm_tokens_);
    out_.inputs_product("shared_gate_inputs", model_.hidden, 1, norm_tokens_);
    memory_.free(saved);
    give_gradient(model_.hidden, true);
  });
}

void Decoder::experts_part() {
  branch_norm();
  // The router, the experts and the shared one read the same input.
  const std::int64_t elements = norm_tokens_ * model_.hidden;
  const int readers = model_.shared_ffn > 0 ? 3 : 2;
  on_backward([this, elements, readers] {
    for (int i = 1; i < readers; ++i) {
      pointwise("add_gradients", 3 * elements * stream_, FrameworkWork::Backward);
    }
  });
  Memory::Id copy = Memory::kNothing;
  if (step_.autocasts()) {
    out_.host(FrameworkWork::Autocast, 2);
    out_.kernel("cast_input", KernelKind::Narrow, elements * (kBf16 + kF32));
    copy = save(elements * kBf16);
    on_backward([this, elements, copy] {
      out_.host(FrameworkWork::Backward);
      out_.kernel("widen_input_gradient", KernelKind::Widen, elements * (kBf16 + kF32));
      memory_.free(copy);
    });
  }
  route();
  send_rows(FrameworkWork::Forward);
  on_backward([this] { bring_rows(FrameworkWork::Backward); });
  expert_products();
  bring_rows(FrameworkWork::Forward);
  const Memory::Id outputs = save(rows_ * model_.hidden * kBf16);
  on_backward([this, outputs] {
    // Each row's weight, and the weight's gradient.
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("weigh_rows", KernelKind::Pointwise, 3 * rows_ * model_.hidden * kBf16);
    send_rows(FrameworkWork::Backward);
    memory_.free(outputs);
  });
  if (model_.shared_ffn > 0) {
    feed_forward(model_.shared_ffn / step_.tensor);
    add_row_bias(model_.has_mlp_bias());
    if (model_.shared_gate) gate_shared();
    pointwise("add_shared", 3 * elements * kBf16, FrameworkWork::Forward);
  }
  if (model_.norms > 2) norm(false);
  add_residual();
}

}  // namespace foretrace::training
