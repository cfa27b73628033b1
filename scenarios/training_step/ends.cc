// What is before the first layer and behind the last one: embedding and loss.
#include <fmt/format.h>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {

void Decoder::embed() {
  const std::int64_t elements = tokens_ * model_.hidden;
  const std::int64_t table = vocab_ * model_.hidden;
  const std::int64_t width = step_.autocasts() ? kF32 : kBf16;
  const bool is_shared = model_.tied && layers_.is_last;
  out_.host(FrameworkWork::Forward);
  out_.kernel("embedding", KernelKind::Gather, 2 * elements * width);
  const std::int64_t places = model_.positions > 0 ? step_.part() * model_.hidden : 0;
  if (places > 0) {
    out_.host(FrameworkWork::Forward, 2);
    out_.kernel("positions", KernelKind::Gather, 2 * places * width);
    out_.kernel("add_positions", KernelKind::Pointwise, 2 * elements * width);
  } else if (!model_.is_placeless) {
    out_.host(FrameworkWork::Forward, 2);
    out_.kernel("rope_table", KernelKind::Narrow, step_.part() * model_.head_dim * 6);
    out_.kernel("rope_table", KernelKind::Narrow, step_.part() * model_.head_dim * 6);
  }
  if (uses_dtensor()) {  // of words of other ranks
    out_.kernel("clear_other_words", KernelKind::Strided, 2 * elements * width);
  }
  leave_tensor_parallel(false);
  const Memory::Id result = save(norm_tokens_ * model_.hidden * stream_);
  on_backward([this, elements, table, width, is_shared, places, result] {
    if (step_.is_frozen()) return memory_.free(result);
    if (places > 0) {
      out_.host(FrameworkWork::Backward, 2);
      out_.kernel("sum_positions", KernelKind::ColumnSum, elements * width);
      out_.kernel("positions_backward", KernelKind::GatherBackward, places * width);
      give_embedding(model_.positions * model_.hidden, width);
    }
    const Memory::Id gradient = memory_.allocate(Part::Temporary, is_shared ? table * width : 0);
    out_.host(FrameworkWork::Backward, 4);
    out_.kernel("clear_embedding", KernelKind::Pointwise, table * width);
    // Where the ranks share the table, other ranks' words all count as the first row, whose sum is
    // a long one (hidden 4096 to 12288: 1.8 to 2.5 times).
    const bool shares_table = uses_dtensor();
    out_.kernel("embedding_backward", KernelKind::GatherBackward,
                elements * width * (shares_table ? 2 : 1));
    if (is_shared) {
      pointwise("add_head_gradient", 3 * table * width, FrameworkWork::Backward);
    } else {
      give_embedding(table, width);
    }
    if (is_shared) hooks_.gradient(table);
    memory_.free(gradient);
    memory_.free(result);
  });
  if (model_.embedding_norm) norm(false);
  drop_out("embedding_dropout", norm_tokens_ * model_.hidden, stream_);
}

/// A gradient that has its parameter's type already.
void Decoder::give_embedding(std::int64_t elements, std::int64_t width) {
  out_.host(FrameworkWork::Accumulate);
  if (step_.adds_wide_gradients()) narrow_gradients_.push_back(elements);
  if (accumulates_ && !step_.adds_wide_gradients()) {
    out_.kernel("accumulate", KernelKind::Pointwise, 3 * elements * width);
  } else if (!accumulates_ && !step_.is_megatron_core() && step_.sharding != Sharding::Fsdp) {
    gradients_.push_back(memory_.allocate(Part::Gradients, elements * width));
  }
  hooks_.gradient(elements);
}

/// Megatron-Core's fused_vocab_parallel_cross_entropy (core/fusions/fused_cross_entropy.py): logits
/// are widened beside their maximum; subtracted, exponents and sums in place; divided, which is
/// what the backward pass multiplies by the loss's gradient and narrows. Two sums over tensor
/// parallel ranks.
void Decoder::megatron_loss() {
  const std::int64_t logits = tokens_ * vocab_;
  const Memory::Id narrow = memory_.allocate(Part::Temporary, logits * kBf16);
  const Memory::Id softmax = save(logits * kF32);
  out_.host(FrameworkWork::Forward, 3);
  out_.kernel("largest_logit", KernelKind::Pointwise, logits * (kBf16 + kF32));
  const auto add_over_ranks = [this](std::int64_t values) {
    if (step_.tensor > 1) out_.collective("all_reduce", "tensor_parallel", values * kF32);
  };
  add_over_ranks(tokens_);
  out_.kernel("exponents", KernelKind::Pointwise, 2 * logits * kF32);
  add_over_ranks(2 * tokens_);
  out_.kernel("softmax", KernelKind::Pointwise, 2 * logits * kF32);
  memory_.free(narrow);
  on_backward([this, logits, softmax] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, logits * kBf16);
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("logit_gradients", KernelKind::Pointwise, logits * (2 * kF32 + kBf16));
    memory_.free(softmax);
    memory_.free(gradient);
  });
}

/// As flash-attn's CrossEntropyLoss: reads bfloat16, keeps the logits for the backward pass, which
/// writes their gradient in bfloat16. Tensor parallel ranks exchange maxima and sums.
void Decoder::fused_loss() {
  const std::int64_t bytes = tokens_ * vocab_ * kBf16;
  const Memory::Id logits = save(step_.hands_out_outputs() ? 0 : bytes);
  if (step_.hands_out_outputs()) keep_output(memory_.allocate(Part::Temporary, bytes), bytes);
  out_.host(FrameworkWork::Forward, 2);
  out_.kernel("fused_loss", KernelKind::Softmax, bytes);
  for (int i = 0; i < 2 && step_.tensor > 1; ++i) {
    out_.collective("all_reduce", "tensor_parallel", tokens_ * kF32);
  }
  on_backward([this, bytes, logits] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, bytes);
    out_.host(FrameworkWork::Backward, 2);
    out_.kernel("fused_loss_backward", KernelKind::SoftmaxBackward, 2 * bytes);
    memory_.free(logits);
    memory_.free(gradient);
  });
}

/// cross_entropy of bfloat16 logits, which the caller holds: log_softmax, whose result is saved,
/// and nll_loss; backward a cleared gradient that nll_loss writes to, and log_softmax's.
void Decoder::half_loss(std::int64_t logits) {
  const std::int64_t bytes = logits * kBf16;
  const Memory::Id saved = save(2 * bytes);
  out_.host(FrameworkWork::Forward, 2);
  out_.kernel("softmax", KernelKind::Softmax, 2 * bytes);
  out_.kernel("loss", KernelKind::Pointwise, tokens_ * kBf16);
  on_backward([this, bytes, saved] {
    const Memory::Id gradients = memory_.allocate(Part::Temporary, 2 * bytes);
    out_.host(FrameworkWork::Backward, 3);
    out_.kernel("clear_logits", KernelKind::Pointwise, bytes);
    out_.kernel("loss_backward", KernelKind::Pointwise, tokens_ * kBf16);
    out_.kernel("softmax_backward", KernelKind::SoftmaxBackward, 3 * bytes);
    memory_.free(gradients);
    memory_.free(saved);
  });
}

/// Until the next step begins.
void Decoder::keep_output(Memory::Id logits, std::int64_t bytes) {
  gradients_.push_back(logits);
  handed_out_ = bytes;
}

void Decoder::join_outputs() {
  if (handed_out_ == 0) return;
  const std::int64_t all = handed_out_ * step_.passes;
  const Memory::Id joined = memory_.allocate(Part::Temporary, all);
  out_.host(FrameworkWork::Forward);
  out_.kernel("join_outputs", KernelKind::Pointwise, 2 * all);
  memory_.free(joined);
}

/// Gemma's: divided, tanh, multiplied, in the logits' own type; what tanh gave is saved.
void Decoder::cap_logits() {
  const std::int64_t bytes = tokens_ * vocab_ * kBf16;
  for (int i = 0; i < 3; ++i) pointwise("cap_logits", 2 * bytes, FrameworkWork::Forward);
  const Memory::Id saved = save(bytes);
  on_backward([this, bytes, saved] {
    const Memory::Id gradient = memory_.allocate(Part::Temporary, bytes);
    for (const std::int64_t moved : {2 * bytes, 3 * bytes, 2 * bytes}) {
      pointwise("cap_logits_backward", moved, FrameworkWork::Backward);
    }
    memory_.free(saved);
    memory_.free(gradient);
  });
}

void Decoder::head_and_loss() {
  norm(false);
  enter_tensor_parallel(1);
  const bool is_shared = model_.tied && layers_.is_first;
  shares_gradient_ = is_shared;
  linear("head", model_.hidden, vocab_, true, model_.head_bias);
  shares_gradient_ = false;
  if (model_.caps_logits) cap_logits();
  if (step_.fused_loss) {
    step_.is_megatron_core() ? megatron_loss() : fused_loss();
    return;
  }
  const bool whole = step_.tensor > 1 && !step_.loss_parallel;
  if (whole) gather_logits();
  const std::int64_t logits = tokens_ * (whole ? model_.vocab : vocab_);
  if (step_.half_loss) return half_loss(logits);
  const Memory::Id narrow = memory_.allocate(Part::Temporary, logits * kBf16);
  const Memory::Id wide = memory_.allocate(Part::Temporary, logits * kF32);
  const Memory::Id logarithms = save(logits * kF32);
  out_.host(FrameworkWork::Forward, 3);
  out_.kernel("widen_logits", KernelKind::Widen, logits * (kBf16 + kF32));
  if (step_.loss_parallel) {  // maximum, difference, exponent, sum, logarithm: kernels of their own
    out_.host(FrameworkWork::Forward, 6);
    for (int i = 0; i < 4; ++i) {
      out_.kernel("parallel_loss", KernelKind::Pointwise, 2 * logits * kF32);
    }
    out_.collective("all_reduce", "tensor_parallel", tokens_ * kF32);
    out_.collective("all_reduce", "tensor_parallel", tokens_ * kF32);
  } else {
    out_.kernel("softmax", KernelKind::Softmax, 2 * logits * kF32);
  }
  out_.kernel("loss", KernelKind::Pointwise, tokens_ * kF32);
  memory_.free(wide);
  if (step_.hands_out_outputs()) {
    keep_output(narrow, logits * kBf16);
  } else {
    memory_.free(narrow);
  }
  on_backward([this, logits, logarithms] {
    const Memory::Id incoming = memory_.allocate(Part::Temporary, logits * kF32);
    const Memory::Id outgoing = memory_.allocate(Part::Temporary, logits * kF32);
    out_.host(FrameworkWork::Backward, 4);
    out_.kernel("clear_logits", KernelKind::Pointwise, logits * kF32);
    out_.kernel("loss_backward", KernelKind::Pointwise, tokens_ * kF32);
    out_.kernel("softmax_backward", KernelKind::SoftmaxBackward, 3 * logits * kF32);
    memory_.free(incoming);
    memory_.free(logarithms);
    const Memory::Id narrowed = memory_.allocate(Part::Temporary, logits * kBf16);
    out_.kernel("narrow_logits", KernelKind::Narrow, logits * (kBf16 + kF32));
    memory_.free(outgoing);
    memory_.free(narrowed);
  });
}

}  // namespace foretrace::training
