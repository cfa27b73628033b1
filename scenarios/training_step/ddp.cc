// Replicas: none, DistributedDataParallel, and the two forms of ZeRO that keep whole parameters.
// Buckets as torch/csrc/distributed/c10d/reducer.cpp fills them: in the order in which gradients
// become ready, the first one small, each closed by the gradient that fills it.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kFirstBucket = 1LL << 20;  // bytes; kDefaultFirstBucketBytes

class Replicas : public Layout {
 public:
  Replicas(const TrainingStep& step, Writer& out, Memory& memory)
      : step_{step}, out_{out}, memory_{memory}, width_{step.float32_parameters ? 4 : 2} {}

  void allocate(const Decoder& decoder) override {
    const std::int64_t experts = decoder.held_experts();
    shares_[0] = {"data_parallel", step_.replicas(), decoder.held_parameters() - experts};
    shares_[1] = {"expert_data", step_.expert_data(), experts};
    for (const Share& share : shares_) {
      const std::int64_t bytes = share.held * width_;
      const bool splits = step_.sharding >= Sharding::Zero1;
      memory_.allocate(Part::Parameters, bytes);
      memory_.allocate(Part::Optimizer, 2 * bytes / (splits ? share.ranks : 1));
      if (step_.sharding == Sharding::None || share.ranks == 1) continue;
      // Measured: the buckets, and in passes of one micro-batch as much again from the forward pass
      // on.
      memory_.allocate(Part::Buffers, bytes * (step_.reduce_every_pass ? 1 : 2));
    }
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
      out_.line(fmt::format("work_wait: {{work: {}}}", work));
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
    if (step_.sharding != Sharding::Zero1 && step_.sharding != Sharding::Zero2) return;
    for (const Share& share : shares_) {
      if (share.held == 0 || share.ranks == 1) continue;
      const std::int64_t shard = share.held / share.ranks * 2;
      out_.host(FrameworkWork::Collective);
      out_.needs(shard, shard * share.ranks);
      out_.line(
          fmt::format("all_gather: {{id: parameters, group: {}, input: part, output: whole, "
                      "size: {}B, type: bfloat16}}",
                      out_.group(share.group), shard));
    }
  }

 private:
  /// Parameters that the same processes hold, and the bucket that their gradients fill.
  struct Share {
    const char* group = "";
    std::int64_t ranks = 1, held = 0;
    std::int64_t filled = 0;  ///< bytes
    std::int64_t seen = 0;    ///< elements of a pass
  };

  void into_bucket(Share& share, std::int64_t elements) {
    if (!reduces_ || share.ranks == 1) return;
    out_.host(FrameworkWork::Reducer);
    out_.kernel("into_bucket", KernelKind::Pointwise, 2 * elements * width_);
    waiting_.push_back(elements);
    share.filled += elements * width_;
    share.seen += elements;
    const bool is_first = share.seen * width_ == share.filled;
    if (share.filled >= (is_first ? kFirstBucket : step_.bucket_bytes)) reduce(share);
  }

  void reduce(Share& share) {
    const std::string work = fmt::format("bucket_{}", buckets_++);
    const bool scatters = step_.sharding == Sharding::Zero2;
    const char* const type = width_ == 4 ? "float32" : "bfloat16";
    out_.host(FrameworkWork::Collective);
    const std::string group = out_.group(share.group);
    if (scatters) {
      const std::int64_t part = (share.filled / share.ranks + 3) / 4 * 4;
      out_.needs(part, part * share.ranks);
      out_.line(
          fmt::format("reduce_scatter: {{id: reduce, group: {}, input: whole, output: part, "
                      "size: {}B, type: {}, async: true, work: {}}}",
                      group, part, type, work));
    } else {
      out_.needs(share.filled, 0);
      out_.line(
          fmt::format("all_reduce: {{id: reduce, group: {}, buffer: part, size: {}B, type: "
                      "{}, async: true, work: {}}}",
                      group, share.filled, type, work));
    }
    works_.push_back(work);
    share.filled = 0;
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
