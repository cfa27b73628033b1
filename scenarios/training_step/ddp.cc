// Replicas: none, DistributedDataParallel, and the two forms of ZeRO that keep whole parameters.
// Buckets as torch/csrc/distributed/c10d/reducer.cpp fills them: in the order in which gradients
// become ready, the first one small, each closed by the gradient that fills it.
#include <fmt/format.h>

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {
namespace {

constexpr std::int64_t kFirstBucket = 1LL << 20;  // bytes; kDefaultFirstBucketBytes

class Replicas : public Layout {
 public:
  Replicas(const TrainingStep& step, Writer& out, Memory& memory)
      : step_{step}, out_{out}, memory_{memory}, width_{step.float32_parameters ? 4 : 2} {}

  void allocate(const Decoder& decoder) override {
    held_ = decoder.held_parameters();
    const std::int64_t sharers = step_.sharding >= Sharding::Zero1 ? step_.data : 1;
    memory_.allocate(Part::Parameters, held_ * width_);
    memory_.allocate(Part::Optimizer, 2 * held_ * width_ / sharers);
    if (step_.sharding == Sharding::None) return;
    // Measured: the buckets, and in passes of one micro-batch as much again from the forward pass
    // on.
    memory_.allocate(Part::Buffers, held_ * width_ * (step_.reduce_every_pass ? 1 : 2));
  }

  void begin_pass(bool is_first, bool is_last) override {
    if (is_first) buckets_ = 0;
    reduces_ = step_.sharding != Sharding::None && (is_last || step_.reduce_every_pass);
    waiting_.clear();
  }

  void gradient(std::int64_t elements) override {
    if (!reduces_) return;
    out_.host(FrameworkWork::Reducer);
    out_.kernel("into_bucket", KernelKind::Pointwise, 2 * elements * width_);
    waiting_.push_back(elements);
    filled_ += elements * width_;
    seen_ += elements;
    const bool is_first = seen_ * width_ == filled_;
    const std::int64_t limit = is_first ? kFirstBucket : step_.bucket_bytes;
    if (filled_ >= limit) reduce();
  }

  void end_pass() override {
    if (!reduces_) return;
    if (filled_ > 0) reduce();
    for (const std::string& work : works_) {
      out_.line(fmt::format("work_wait: {{work: {}}}", work));
    }
    works_.clear();
    seen_ = 0;
    if (step_.bucket_views) return;
    for (const std::int64_t elements : waiting_) {
      out_.host(FrameworkWork::Reducer);
      out_.kernel("out_of_bucket", KernelKind::Pointwise, 2 * elements * width_);
    }
    waiting_.clear();
  }

  void after_update() override {
    if (step_.sharding != Sharding::Zero1 && step_.sharding != Sharding::Zero2) return;
    const std::int64_t shard = held_ / step_.data * 2;
    out_.host(FrameworkWork::Collective);
    out_.needs(shard, shard * step_.data);
    out_.line(
        fmt::format("all_gather: {{id: parameters, group: {}, input: part, output: whole, "
                    "size: {}B, type: bfloat16}}",
                    out_.group("data_parallel"), shard));
  }

 private:
  void reduce() {
    const std::string work = fmt::format("bucket_{}", buckets_++);
    const bool scatters = step_.sharding == Sharding::Zero2;
    const char* const type = width_ == 4 ? "float32" : "bfloat16";
    out_.host(FrameworkWork::Collective);
    const std::string group = out_.group("data_parallel");
    if (scatters) {
      const std::int64_t part = (filled_ / step_.data + 3) / 4 * 4;
      out_.needs(part, part * step_.data);
      out_.line(
          fmt::format("reduce_scatter: {{id: reduce, group: {}, input: whole, output: part, "
                      "size: {}B, type: {}, async: true, work: {}}}",
                      group, part, type, work));
    } else {
      out_.needs(filled_, 0);
      out_.line(
          fmt::format("all_reduce: {{id: reduce, group: {}, buffer: part, size: {}B, type: "
                      "{}, async: true, work: {}}}",
                      group, filled_, type, work));
    }
    works_.push_back(work);
    filled_ = 0;
  }

  const TrainingStep& step_;
  Writer& out_;
  Memory& memory_;
  std::int64_t width_;  ///< bytes of a gradient's element
  std::int64_t held_ = 0;
  bool reduces_ = false;
  std::int64_t filled_ = 0, seen_ = 0, buckets_ = 0;
  std::vector<std::int64_t> waiting_;
  std::vector<std::string> works_;
};

}  // namespace

std::unique_ptr<Layout> make_layout(const TrainingStep& step, Writer& out, Memory& memory) {
  if (step.sharding == Sharding::Fsdp) return make_fsdp(step, out, memory);
  return std::make_unique<Replicas>(step, out, memory);
}

}  // namespace foretrace::training
