#include "models/cost/library.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/constants/constants.h"
#include "models/cost/captured.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::cost {
namespace {

struct MemoryParams {
  Param base, rate;
};

MemoryParams memory_params(KernelKind kind) {
  using enum Param;
  switch (kind) {
    case KernelKind::Pointwise:
      return {LibraryPointwiseBase, LibraryPointwiseRate};
    case KernelKind::Narrow:
      return {LibraryNarrowBase, LibraryNarrowRate};
    case KernelKind::Widen:
      return {LibraryWidenBase, LibraryWidenRate};
    case KernelKind::Mixed:
      return {LibraryMixedBase, LibraryMixedRate};
    case KernelKind::Strided:
      return {LibraryStridedBase, LibraryStridedRate};
    case KernelKind::Concatenate:
      return {LibraryConcatenateBase, LibraryConcatenateRate};
    case KernelKind::LayerNorm:
      return {LibraryLayerNormBase, LibraryLayerNormRate};
    case KernelKind::LayerNormBackward:
      return {LibraryLayerNormBackwardBase, LibraryLayerNormBackwardRate};
    case KernelKind::LayerNormWeights:
      return {LibraryLayerNormWeightsBase, LibraryLayerNormWeightsRate};
    case KernelKind::RmsNorm:
      return {LibraryRmsNormBase, LibraryRmsNormRate};
    case KernelKind::RmsNormBackward:
      return {LibraryRmsNormBackwardBase, LibraryRmsNormBackwardRate};
    case KernelKind::RmsNormWeights:
      return {LibraryRmsNormWeightsBase, LibraryRmsNormWeightsRate};
    case KernelKind::ColumnSum:
      return {LibraryColumnSumBase, LibraryColumnSumRate};
    case KernelKind::Softmax:
      return {LibrarySoftmaxBase, LibrarySoftmaxRate};
    case KernelKind::SoftmaxBackward:
      return {LibrarySoftmaxBackwardBase, LibrarySoftmaxBackwardRate};
    case KernelKind::Gather:
      return {LibraryGatherBase, LibraryGatherRate};
    case KernelKind::GatherBackward:
      return {LibraryGatherBackwardBase, LibraryGatherBackwardRate};
    case KernelKind::Optimizer:
      return {LibraryOptimizerBase, LibraryOptimizerRate};
    case KernelKind::OptimizerHalf:
      return {LibraryOptimizerHalfBase, LibraryOptimizerHalfRate};
    case KernelKind::ShardCopy:
      return {LibraryShardCopyBase, LibraryShardCopyRate};
    case KernelKind::AttentionForward:
    case KernelKind::AttentionBackward:
    case KernelKind::Captured:
      break;
  }
  FORETRACE_CHECK(false, "attention and captured kernels are no roofline of bytes alone");
  return {LibraryPointwiseBase, LibraryPointwiseRate};
}

Param framework_param(FrameworkWork work) {
  switch (work) {
    case FrameworkWork::Forward:
      return Param::EagerForward;
    case FrameworkWork::Linear:
      return Param::EagerLinear;
    case FrameworkWork::Attention:
      return Param::EagerAttention;
    case FrameworkWork::Autocast:
      return Param::EagerAutocast;
    case FrameworkWork::Backward:
      return Param::EagerBackward;
    case FrameworkWork::Product:
      return Param::EagerProduct;
    case FrameworkWork::AttentionBackward:
      return Param::EagerAttentionBackward;
    case FrameworkWork::Accumulate:
      return Param::EagerAccumulate;
    case FrameworkWork::Reducer:
      return Param::EagerReducer;
    case FrameworkWork::Collective:
      return Param::EagerCollective;
    case FrameworkWork::Shard:
      return Param::EagerShard;
    case FrameworkWork::DTensor:
      return Param::EagerDTensor;
    case FrameworkWork::Stage:
      return Param::EagerStage;
    case FrameworkWork::Recompute:
      return Param::EagerRecompute;
    case FrameworkWork::Optimizer:
      return Param::EagerOptimizer;
    case FrameworkWork::Parameter:
      return Param::EagerParameter;
    case FrameworkWork::Step:
      return Param::EagerStep;
    case FrameworkWork::Captured:
      return Param::EagerCaptured;
    case FrameworkWork::CapturedProduct:
      return Param::EagerCapturedProduct;
    case FrameworkWork::CapturedLibrary:
      return Param::EagerCapturedLibrary;
  }
  return Param::EagerForward;
}

/// What such kernels do to the SMs' clock: the lost part that their power alone would lead to.
/// Kernels below the limit give back what those above it take, so it may be negative.
double lost_by_power(Reading& read, Param power) {
  if (!read.has(power) || !read.has(Param::ProductsClockSlope)) return 0;
  return read.value(Param::ProductsClockSlope) *
         (read.value(power) - read.value(Param::ProductsFreeRandom));
}

/// Of heads of 64 and of 128, in between by the size. Wider ones take smaller tiles: heads of 256
/// have `widest` of the rate of 128; beyond as 256.
double rate_of_width(Reading& read, double width, Param rate_64, Param rate_128, double widest) {
  const double share = std::clamp((width - 64) / 64, 0.0, 1.0);
  if (share == 0) return read.rate(rate_64);
  if (share < 1) return read.rate(rate_64) * (1 - share) + read.rate(rate_128) * share;
  const double beyond = std::clamp((width - 128) / 128, 0.0, 1.0);
  return read.rate(rate_128) * (1 - (1 - widest) * beyond);
}

/// Per flop that is needed. On Hopper (where products have their place) cuDNN's tiles of heads
/// wider than 64 are multiples of 128: heads of 80 and 96 take what 128 take. FlashAttention-2 has
/// tiles in steps of 32.
double attention_rate(Reading& read, double width, Param rate_64, Param rate_128, double widest) {
  static const double kHopper = constant("attention.hopper_tile");
  static const double kOthers = constant("attention.other_tile");
  const double tile = read.has(Param::ProductsHalfRate) ? kHopper : kOthers;
  const double computed = width > 64 ? tile * std::ceil(width / tile) : width;
  return rate_of_width(read, computed, rate_64, rate_128, widest) * width / computed;
}

KernelCost attention_cost(Reading& read, const LibraryWork& work) {
  using enum Param;
  const bool forward = work.kernel == KernelKind::AttentionForward;
  static const double kWidestForward = constant("attention.widest_forward");
  static const double kWidestBackward = constant("attention.widest_backward");
  const double rate = forward ? attention_rate(read, work.width, LibraryAttentionForwardRate64,
                                               LibraryAttentionForwardRate128, kWidestForward)
                              : attention_rate(read, work.width, LibraryAttentionBackwardRate64,
                                               LibraryAttentionBackwardRate128, kWidestBackward);
  KernelCost cost;
  cost.alone = read.time(forward ? LibraryAttentionForwardBase : LibraryAttentionBackwardBase) +
               seconds_to_duration(work.flops / rate);
  cost.clock.share = 1;
  cost.clock.lost = lost_by_power(read, LibraryAttentionPower);
  return cost;
}

KernelCost memory_cost(Reading& read, const LibraryWork& work) {
  const MemoryParams params = memory_params(work.kernel);
  KernelCost cost;
  cost.alone = read.time(params.base) + seconds_to_duration(work.bytes / read.rate(params.rate));
  cost.clock.lost = lost_by_power(read, Param::LibraryMemoryPower);
  if (read.has(Param::LibraryMemoryClock)) {
    cost.clock.share = read.value(Param::LibraryMemoryClock);
  }
  return cost;
}

/// Processes of one run do the same work at different speeds (cores, their clocks, where their
/// memory lies), and all wait for the slowest: expected largest of n normal deviations. More than
/// eight at once were never measured and count as eight.
double slowest_of(Reading& read, std::uint32_t processes) {
  constexpr std::array kLargest{0.0, 0.5642, 0.8463, 1.0294, 1.1630, 1.2672, 1.3522, 1.4236};
  if (processes < 2 || !read.has(Param::EagerSlowest)) return 1;
  const std::size_t among = std::min<std::size_t>(processes, kLargest.size());
  return std::exp(read.value(Param::EagerSlowest) * kLargest[among - 1]);
}

}  // namespace

KernelCost library_cost(Reading& read, const LibraryWork& work) {
  if (work.kernel == KernelKind::Captured) {
    return captured_cost(read, {work.captured, work.bytes, work.flops});
  }
  const bool attends =
      work.kernel == KernelKind::AttentionForward || work.kernel == KernelKind::AttentionBackward;
  KernelCost cost = attends ? attention_cost(read, work) : memory_cost(read, work);
  cost.sms = read.count(Param::SmCount);
  cost.hbm_bytes_per_second = work.bytes / std::max(1e-12, to_seconds(cost.alone));
  cost.clock.averages = true;
  return cost;
}

Duration framework_time(Reading& read, const FrameworkCalls& calls) {
  Duration mean = read.time(framework_param(calls.work)) * calls.count;
  if (calls.queries != 0) mean += read.time(Param::EagerCapturedQuery) * calls.queries;
  return seconds_to_duration(to_seconds(mean) * slowest_of(read, calls.processes));
}

}  // namespace foretrace::cost
