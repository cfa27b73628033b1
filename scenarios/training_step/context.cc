// Context parallel: every process has two of a sequence's 2n parts, one from each end, so that
// under a causal mask all multiply as much; keys and values of every process come past every other
// one. In each of n steps a process attends to one other's (first to its own); what comes out is
// merged by the logarithms of the softmax sums. Backward, the gradients of keys and values go
// round.
//   all_gather  torch.distributed.tensor.experimental._attention (_templated_ring_attention, its
//               backward, _AllGatherRotater), what torchtitan runs: keys and values are gathered
//               while attention to the own ones runs; sums and gradients in float32.
//   send_recv   Transformer Engine's AttnFuncWithCPAndKVP2P, Megatron's cp_comm_type p2p: each step
//               passes on what the last one brought; backward in the other order, so that
//               gradients end where their keys are; sums in float32, gradients in bfloat16.
#include <string>

#include "scenarios/training_step/decoder.h"

namespace foretrace::training {
/// Attention to the keys of who is so far back in the ring. Those of processes before this one
/// have half of their keys behind all queries here; of those after it only the later half of
/// queries sees any.
Decoder::AttentionPart Decoder::ring_part(std::int64_t distance) const {
  if (distance == 0) return causal_attention({});
  const std::int64_t square = 4 * step_.micro_batch * q_ * step_.part();
  const bool is_before = distance <= layers_.ring.position;
  return {is_before ? tokens_ : tokens_ / 2, is_before ? tokens_ / 2 : tokens_,
          square * step_.part() / 2, square * step_.part() / 4 * 5};
}

/// Bytes to the next process of the ring, as many from the one before.
void Decoder::pass_on(std::int64_t bytes, const char* work) {
  out_.host(FrameworkWork::Collective, 2);
  out_.needs_own("own_keys", bytes);
  out_.needs_own("other_keys", bytes);
  const std::string group = out_.group("context_parallel");
  out_.transfers(group, work,
                 {{true, work, "own_keys", bytes, out_.rank_in(group, layers_.ring.next)},
                  {false, {}, "other_keys", bytes, out_.rank_in(group, layers_.ring.previous)}});
}

void Decoder::ring_attention() {
  const std::int64_t keys = tokens_ * (kv_ + v_) * kBf16;
  const bool gathers = step_.exchange == ContextExchange::AllGather;
  const Memory::Id others = memory_.allocate(Part::Temporary, keys * (gathers ? step_.context : 2));
  const Memory::Id sums = memory_.allocate(Part::Temporary, tokens_ * q_ * (kBf16 + kF32));
  if (gathers) gather_keys(keys);
  for (std::int64_t i = 0; i < step_.context; ++i) {
    const bool passes_on = !gathers && i + 1 < step_.context;
    if (passes_on) pass_on(keys, "keys");
    const AttentionPart part = ring_part(i);
    attend(part);
    out_.host(FrameworkWork::Forward, 2);
    out_.kernel("merge_attention", KernelKind::Pointwise, part.queries * q_ * (kBf16 + 2 * kF32));
    if (passes_on || (gathers && i == 0)) out_.wait("keys");
  }
  memory_.free(others);
  memory_.free(sums);
}

void Decoder::gather_keys(std::int64_t bytes) {
  out_.host(FrameworkWork::Collective);
  out_.needs_own("own_keys", bytes);
  out_.needs_own("other_keys", bytes * step_.context);
  const std::string group = out_.group("context_parallel");
  out_.collective({.kind = CollectiveKind::AllGather,
                   .id = "keys",
                   .group = group,
                   .input = "own_keys",
                   .output = "other_keys",
                   .bytes = bytes,
                   .work = "keys"});
}

void Decoder::ring_attention_back() {
  const std::int64_t last = step_.context - 1;
  const std::int64_t elements = tokens_ * (kv_ + v_), keys = elements * kBf16;
  const bool gathers = step_.exchange == ContextExchange::AllGather;
  const std::int64_t width = gathers ? kF32 : kBf16;  // of a gradient's element
  const Memory::Id others = memory_.allocate(
      Part::Temporary, keys * (gathers ? step_.context : 2) + 3 * elements * width);
  const Memory::Id sums = memory_.allocate(Part::Temporary, tokens_ * q_ * width);
  const auto add = [&](const char* id, std::int64_t count) {
    out_.host(FrameworkWork::Backward);
    out_.kernel(id, KernelKind::Pointwise, count * (kBf16 + 2 * width));
  };
  if (gathers) gather_keys(keys);
  for (std::int64_t i = 0; i <= last; ++i) {
    // Keys go with the gradients of those before them.
    if (!gathers) pass_on(i > 0 && i < last ? 2 * keys : keys, "keys");
    const AttentionPart part = ring_part(gathers ? i : last - i);
    attend_back(part);
    add("add_query_gradients", part.queries * q_);
    if (!gathers || i == 0) out_.wait("keys");
    if (gathers && i > 0) out_.wait("key_gradients");
    if (gathers || i > 0) add("add_key_gradients", 2 * part.keys * kv_);
    if (gathers) pass_on(elements * width, "key_gradients");
  }
  if (gathers) out_.wait("key_gradients");
  memory_.free(others);
  memory_.free(sums);
}

}  // namespace foretrace::training
