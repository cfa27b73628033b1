// Replicas: none, DistributedDataParallel, and the two forms of ZeRO that keep whole parameters.
// Buckets as torch/csrc/distributed/c10d/reducer.cpp fills them: in the order in which gradients
// become ready, the first one small, each closed by the gradient that fills it.
// Megatron-Core's (core/distributed, distrib_optimizer.py) lie in their buckets from the beginning,
// in the type that is reduced in; those of a distributed optimizer are scattered, and its
// parameters gathered in the next step's first forward pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kFirstBucket = 1LL << 20;  // bytes; kDefaultFirstBucketBytes
constexpr std::int64_t kBucket = 25LL << 20;      // bytes; DistributedDataParallel's bucket_cap_mb
// Parameters; bucket_size of Megatron-Core's DistributedDataParallelConfig: 40 million, or a
// million for each replica where that is more.
constexpr std::int64_t kCoreBucket = 40'000'000;
constexpr std::int64_t kCoreBucketOfARank = 1'000'000;

class Replicas : public Layout {
 public:
  Replicas(const TrainingStep& step, Writer& out, Memory& memory)
      : step_{step}, out_{out}, memory_{memory}, width_{width_of(step)} {}

  void allocate(const Decoder& decoder) override {
    const std::int64_t experts = step_.is_frozen() ? 0 : decoder.held_experts();
    shares_[0] = {"data_parallel", step_.replicas(), decoder.trained_parameters() - experts};
    if (step_.is_frozen()) {
      memory_.allocate(Part::Parameters, decoder.frozen_bytes());
    }
    shares_[1] = {"expert_data", step_.expert_data(), experts};
    for (const Share& share : shares_) {
      const bool splits = step_.sharding >= Sharding::Zero1;
      if (step_.is_megatron_core()) {
        memory_.allocate(Part::Parameters, 2 * share.held);
        memory_.allocate(Part::Gradients, width_ * share.held);
        memory_.allocate(Part::Optimizer, 12 * share.held / (splits ? share.ranks : 1));
        continue;
      }
      const std::int64_t bytes = share.held * (step_.float32_parameters ? 4 : 2);
      memory_.allocate(Part::Parameters, bytes);
      if (step_.adds_wide_gradients()) memory_.allocate(Part::Gradients, 4 * share.held);
      const std::int64_t moments = step_.is_megatron() ? 3 * 4 * share.held : 2 * bytes;
      memory_.allocate(Part::Optimizer, moments / (splits ? share.ranks : 1));
      if (step_.sharding == Sharding::None || share.ranks == 1 || step_.is_megatron()) continue;
      // Measured: the buckets, and in passes of one micro-batch as much again from the forward pass
      // on.
      memory_.allocate(Part::Buffers, bytes * (step_.reduce_every_pass ? 1 : 2));
    }
  }

  void begin_step() override {
    if (step_.is_megatron_core()) gather_parameters(true);
  }

  void begin_pass(bool /*is_first*/, bool is_last) override {
    reduces_ = step_.sharding != Sharding::None && (is_last || step_.reduce_every_pass);
  }

  void gradient(std::int64_t elements) override { into_bucket(shares_[0], elements); }
  void expert_gradient(std::int64_t elements) override { into_bucket(shares_[1], elements); }

  void end_pass() override {
    if (!reduces_) return;
    for (Share& share : shares_) {
      if (share.filled > 0) reduce(share);
      share.seen = 0;
    }
    for (const std::string& work : works_) {
      out_.wait(work);
    }
    works_.clear();
    buckets_ = 0;
    for (const std::int64_t elements : std::exchange(waiting_, {})) {
      if (step_.bucket_views) continue;
      out_.host(FrameworkWork::Reducer);
      out_.kernel("out_of_bucket", KernelKind::Pointwise, 2 * elements * width_);
    }
  }

  void after_update() override {
    if (!step_.is_megatron_core()) gather_parameters(false);
  }

 private:
  static std::int64_t width_of(const TrainingStep& step) {
    const bool holds = step.is_megatron_core() || step.is_deepspeed();  // in a type of their own
    const bool wide = holds ? step.float32_reduce : step.float32_parameters;
    return wide ? 4 : 2;
  }

  /// Ahead of the forward pass, or behind the update.
  void gather_parameters(bool is_ahead) {
    if (step_.sharding != Sharding::Zero1 && step_.sharding != Sharding::Zero2) return;
    for (const Share& share : shares_) {
      if (share.held == 0 || share.ranks == 1) continue;
      // Transformer Engine's float8 parameters are gathered as such (fp8_param_gather).
      const bool is_narrow = step_.holds_narrow() && step_.narrow != Narrow::Nv4;
      const std::int64_t shard = share.held / share.ranks * (is_narrow ? kF8 : kBf16);
      out_.host(FrameworkWork::Collective);
      std::string part = "part", whole = "whole";
      if (is_ahead) {
        part = fmt::format("{}_shard", share.group);
        whole = fmt::format("{}_parameters", share.group);
        out_.needs_own(part, shard);
        out_.needs_own(whole, shard * share.ranks);
      } else {
        out_.needs(shard, shard * share.ranks);
      }
      const std::string group = out_.group(share.group);
      out_.collective({.kind = CollectiveKind::AllGather,
                       .id = "parameters",
                       .group = group,
                       .input = part,
                       .output = whole,
                       .bytes = shard,
                       .work = is_ahead ? "parameters" : ""});
      // torch.distributed gathers into one tensor, and copies out of it into the list it was given.
      if (step_.is_deepspeed()) {
        out_.kernel("out_of_gathered", KernelKind::Pointwise, 2 * shard * share.ranks);
      }
    }
  }

  /// Parameters that the same processes hold, and the bucket that their gradients fill.
  struct Share {
    const char* group = "";
    std::int64_t ranks = 1, held = 0;
    std::int64_t filled = 0;  ///< bytes
    std::int64_t seen = 0;    ///< elements of a pass
  };

  void into_bucket(Share& share, std::int64_t elements) {
    if (!reduces_ || share.ranks == 1) return;
    if (step_.is_megatron()) {  // gradients lie together, and are reduced behind the last pass
      share.filled += elements * width_;
      return;
    }
    if (!step_.is_megatron_core()) {
      out_.host(FrameworkWork::Reducer);
      out_.kernel("into_bucket", KernelKind::Pointwise, 2 * elements * width_);
      waiting_.push_back(elements);
    }
    share.filled += elements * width_;
    share.seen += elements;
    const bool is_first = !step_.is_megatron_core() && share.seen * width_ == share.filled;
    if (share.filled >= (is_first ? kFirstBucket : bucket_bytes(share))) reduce(share);
  }

  std::int64_t bucket_bytes(const Share& share) const {
    if (step_.bucket_bytes > 0) return step_.bucket_bytes;
    if (!step_.is_megatron_core()) return kBucket;
    return std::max(kCoreBucket, kCoreBucketOfARank * share.ranks) * width_;
  }

  void reduce(Share& share) {
    const std::string work = fmt::format("bucket_{}", buckets_++);
    const bool scatters = step_.sharding == Sharding::Zero2 ||
                          (step_.is_megatron_core() && step_.sharding == Sharding::Zero1);
    const std::int64_t bytes = scatters ? (share.filled / share.ranks + 3) / 4 * 4 : share.filled;
    std::string part = "part", whole = "whole";
    if (step_.is_megatron_core()) {  // gradients lie in buckets, beside which layers have
                                     // collectives
      part = fmt::format("{}_part", share.group);
      whole = fmt::format("{}_gradients", share.group);
      out_.needs_own(part, bytes);
      if (scatters) out_.needs_own(whole, bytes * share.ranks);
    } else {
      out_.needs(bytes, scatters ? bytes * share.ranks : 0);
    }
    if (step_.is_deepspeed()) mean_in_bucket(share.filled);
    out_.host(FrameworkWork::Collective);
    const std::string group = out_.group(share.group);
    out_.collective({.kind = scatters ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                     .id = "reduce",
                     .group = group,
                     .input = scatters ? whole : part,
                     .output = part,
                     .bytes = bytes,
                     .work = work,
                     .type = width_ == 4 ? DataType::Float32 : DataType::BFloat16});
    works_.push_back(work);
    share.filled = 0;
  }

  /// allreduce_bucket of DeepSpeed's ZeRO (8eef742f, runtime/zero/stage_1_and_2.py: stage 1 has no
  /// contiguous gradients) and engine (15293139, runtime/engine.py): a mean in the bucket, which
  /// gradients are copied back from, and in 16 bits into.
  void mean_in_bucket(std::int64_t bytes) {
    out_.host(FrameworkWork::Reducer, 3);
    out_.kernel("mean_in_bucket", KernelKind::Pointwise, (width_ == 4 ? 4 : 6) * bytes);
  }

  const TrainingStep& step_;
  Writer& out_;
  Memory& memory_;
  std::int64_t width_;           ///< bytes of a gradient's element
  std::array<Share, 2> shares_;  ///< of experts last
  bool reduces_ = false;
  std::int64_t buckets_ = 0;
  std::vector<std::int64_t> waiting_;
  std::vector<std::string> works_;
};

}  // namespace

std::unique_ptr<Layout> make_layout(const TrainingStep& step, Writer& out, Memory& memory) {
  if (step.sharding == Sharding::Fsdp) return make_fsdp(step, out, memory);
  return std::make_unique<Replicas>(step, out, memory);
}

}  // namespace foretrace::training
