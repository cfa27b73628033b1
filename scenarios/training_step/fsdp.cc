// FSDP2 (torch/distributed/fsdp/_fully_shard): a group of parameters for each block and one for the
// rest. Shards are copied and gathered on streams of their own, the whole parameters copied out
// on the current one; backward, the next group is gathered ahead, and gradients are scattered
// behind each group. A layer's experts, where processes share them, are sharded over those that
// hold the same ones: gathered and scattered beside the rest of their group (torchtitan's layout).
// FSDP1 (torch/distributed/fsdp/_flat_param.py): a group is one tensor, so nothing is copied out of
// it; its gradient is a concatenation as FSDP2's copy is.
// Hybrid sharding: behind its scattering a group's shard is reduced over the copies (HSDP's
// all_reduce of foreach_reduce), which is waited for at the end.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {
namespace {

class FullyShard : public Layout {
 public:
  FullyShard(const TrainingStep& step, Writer& out, Memory& memory)
      : step_{step}, out_{out}, memory_{memory} {}

  void allocate(const Decoder& decoder) override {
    std::int64_t shards = 0;
    for (std::int64_t group = 0; group < decoder.groups(); ++group) {
      const std::int64_t all = decoder.group_parameters(group);
      const std::int64_t experts = step_.expert > 1 ? decoder.group_experts(group) : 0;
      sizes_.push_back(all);
      const bool is_hybrid = step_.is_hybrid();
      parts_.push_back({{is_hybrid ? "shard_parallel" : "data_parallel",
                         is_hybrid ? step_.shard : step_.replicas(), all - experts}});
      if (experts > 0) parts_.back().push_back({"expert_data", step_.expert_data(), experts});
      shards += share(group);
    }
    const std::int64_t width = step_.float32_parameters ? 4 : kBf16;
    memory_.allocate(Part::Parameters, shards * width);
    memory_.allocate(Part::Optimizer, 2 * shards * width);
    whole_.resize(sizes_.size());
    tensors_ = decoder.held_tensors() / decoder.groups();
  }

  void begin_pass(bool is_first, bool is_last) override {
    is_first_ = is_first;
    scatters_ = is_last || step_.reduce_every_pass;
  }

  void before_forward(std::int64_t group) override { gather_now(group); }

  void after_forward(std::int64_t group) override {
    if (step_.reshard && group != rest()) release(group);
  }

  /// A group's hooks take as long where it is whole still (measured: steps that keep their
  /// parameters take no less of the host's time).
  void before_backward(std::int64_t group) override {
    if (whole_[place(group)] != Memory::kNothing && group != rest())
      out_.host(FrameworkWork::Shard);
    gather_now(group);
    const std::int64_t next = group == rest() ? rest() - 1 : group - 1;
    if (next >= 0 && whole_[place(next)] == Memory::kNothing) start(next);
  }

  void expert_gradient(std::int64_t elements) override { gradient(elements); }
  void gradient(std::int64_t elements) override {
    if (step_.passes == 1 || step_.reduce_every_pass) return;
    // Unsharded sums in the type that is reduced in: made by the first pass, added to by the
    // others.
    const bool wide = step_.float32_reduce;
    out_.host(FrameworkWork::Accumulate);
    if (is_first_) {
      if (wide) out_.kernel("hold_gradient", KernelKind::Widen, elements * 6);
    } else {
      out_.kernel("hold_gradient", wide ? KernelKind::Mixed : KernelKind::Pointwise,
                  elements * (wide ? 10 : 6));
    }
  }

  void after_backward(std::int64_t group) override {
    release(group);
    if (!scatters_) {
      out_.host(FrameworkWork::Shard);
      if (is_first_) memory_.allocate(Part::Gradients, sizes_[place(group)] * 4);
      return;
    }
    const std::int64_t wide = step_.float32_reduce ? 4 : kBf16;
    const DataType type = step_.float32_reduce ? DataType::Float32 : DataType::BFloat16;
    wait_for_scattered();
    memory_.free(scattering_);
    scattering_ = memory_.allocate(Part::Buffers, sizes_[place(group)] * wide);
    if (!step_.reduce_every_pass || is_first_)
      gradients_.push_back(
          memory_.allocate(Part::Gradients, share(group) * (step_.float32_parameters ? 4 : 2)));
    out_.host(FrameworkWork::Shard);
    out_.kernel("join_gradients", KernelKind::ShardCopy, sizes_[place(group)] * (kBf16 + wide));
    if (step_.is_hybrid()) scattering_part_ = share(group) * wide;
    for (const Sharded& one : parts_[place(group)]) {
      if (one.ranks == 1) continue;
      out_.host(FrameworkWork::Collective);
      const std::int64_t part = one.share() * wide;
      out_.needs(part, part * one.ranks);
      scattered_.push_back(fmt::format("scattered_{}{}", group, one.suffix()));
      const std::string among = out_.group(one.group);
      out_.collective({.kind = CollectiveKind::ReduceScatter,
                       .id = "scatter",
                       .group = among,
                       .input = "whole",
                       .output = "part",
                       .bytes = part,
                       .work = scattered_.back(),
                       .type = type,
                       .op = RedOp::Avg});
    }
  }

  void end_pass() override {
    if (!scatters_ || scattered_.empty()) return;
    wait_for_scattered();
    for (const std::string& work : std::exchange(reduced_, {})) out_.wait(work);
    memory_.free(std::exchange(scattering_, Memory::kNothing));
  }

  void after_update() override {
    for (const Memory::Id id : std::exchange(gradients_, {})) memory_.free(id);
  }

 private:
  /// Parameters of a group that are sharded over the same processes.
  struct Sharded {
    std::string_view group;
    std::int64_t ranks = 1, elements = 0;

    std::int64_t share() const { return (elements + ranks - 1) / ranks; }
    /// Of the names of works.
    const char* suffix() const { return group == "expert_data" ? "_experts" : ""; }
  };

  static std::string gathered(std::int64_t group, const Sharded& one) {
    return fmt::format("gathered_{}{}", group, one.suffix());
  }

  void wait_for_scattered() {
    for (const std::string& work : std::exchange(scattered_, {})) {
      out_.wait(work);
    }
    if (scattering_part_ == 0) return;
    const std::int64_t part = std::exchange(scattering_part_, 0);
    out_.host(FrameworkWork::Collective);
    out_.needs(part, 0);
    reduced_.push_back(fmt::format("reduced_{}", reduced_.size()));
    const std::string among = out_.group("copies");
    out_.collective({.id = "reduce_over_copies",
                     .group = among,
                     .input = "part",
                     .output = "part",
                     .bytes = part,
                     .work = reduced_.back(),
                     .type = step_.float32_reduce ? DataType::Float32 : DataType::BFloat16,
                     .op = RedOp::Avg});
  }

  static std::size_t place(std::int64_t group) { return static_cast<std::size_t>(group); }
  std::int64_t rest() const { return static_cast<std::int64_t>(sizes_.size()) - 1; }
  std::int64_t share(std::int64_t group) const {
    std::int64_t all = 0;
    for (const Sharded& one : parts_[place(group)]) all += one.share();
    return all;
  }

  /// Copies the shard into a buffer and gathers it, ahead of what the current stream does.
  void start(std::int64_t group) {
    if (whole_[place(group)] != Memory::kNothing || started_.contains(group)) return;
    const std::int64_t part = share(group) * kBf16;
    out_.host(FrameworkWork::Shard);
    out_.on_stream("gathering");
    if (step_.float32_parameters) {
      out_.kernel("narrow_shard", KernelKind::Narrow, share(group) * 6);
    }
    out_.kernel("copy_shard", KernelKind::Pointwise, 2 * part);
    out_.on_stream("");
    std::int64_t whole = 0;
    for (const Sharded& one : parts_[place(group)]) {
      const std::int64_t bytes = one.share() * kBf16;
      whole += bytes * one.ranks;
      if (one.ranks == 1) continue;
      out_.host(FrameworkWork::Collective);
      out_.needs(bytes, bytes * one.ranks);
      const std::string among = out_.group(one.group), work = gathered(group, one);
      out_.collective({.kind = CollectiveKind::AllGather,
                       .id = "gather",
                       .group = among,
                       .input = "part",
                       .output = "whole",
                       .bytes = bytes,
                       .work = work,
                       .stream = "gathering"});
    }
    started_[group] = memory_.allocate(Part::Buffers, whole);
  }

  void gather_now(std::int64_t group) {
    if (whole_[place(group)] != Memory::kNothing) return;
    start(group);
    for (const Sharded& one : parts_[place(group)]) {
      if (one.ranks == 1) continue;
      out_.wait(gathered(group, one));
    }
    if (step_.flat_parameters) {
      whole_[place(group)] = started_[group];
      started_.erase(group);
      return;
    }
    whole_[place(group)] = memory_.allocate(Part::Buffers, sizes_[place(group)] * kBf16);
    out_.kernel("spread_parameters", KernelKind::ShardCopy, 2 * sizes_[place(group)] * kBf16);
    memory_.free(started_[group]);
    started_.erase(group);
  }

  void release(std::int64_t group) {
    memory_.free(std::exchange(whole_[place(group)], Memory::kNothing));
  }

  const TrainingStep& step_;
  Writer& out_;
  Memory& memory_;
  std::vector<std::int64_t> sizes_;          ///< elements of each group
  std::vector<std::vector<Sharded>> parts_;  ///< of each group
  std::vector<Memory::Id> whole_;            ///< where a group is gathered
  std::map<std::int64_t, Memory::Id> started_;
  std::vector<Memory::Id> gradients_;
  Memory::Id scattering_ = Memory::kNothing;
  std::vector<std::string> scattered_;  ///< works
  std::int64_t scattering_part_ = 0;    ///< bytes that copies are to add once they are scattered
  std::vector<std::string> reduced_;    ///< works
  std::int64_t tensors_ = 0;
  bool is_first_ = true, scatters_ = true;
};

}  // namespace

std::unique_ptr<Layout> make_fsdp(const TrainingStep& step, Writer& out, Memory& memory) {
  return std::make_unique<FullyShard>(step, out, memory);
}

}  // namespace foretrace::training
