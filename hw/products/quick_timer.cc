#include "hw/products/quick_timer.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/kernels.h"
#include "hw/products/events.h"
#include "hw/products/operand.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kTimings = 3;
/// Below this a call's host time may be what a loop shows: a graph then.
constexpr double kCallsDecideUs = 25;
constexpr double kQuickTimingUs = 250;  // events resolve 0.5 us
constexpr double kFewest = 3, kMost = 64;
/// A product as long as this has an estimate of one, and fewer in a row.
constexpr double kLongUs = 500;
/// Goes through the level-2 cache before rotated operands are used: more than any there is.
constexpr std::size_t kFlushedBytes = std::size_t{256} << 20;

}  // namespace

class QuickTimer::Impl {
 public:
  Impl(cudaStream_t stream, const ProductCublas& cublas, const OperandSizes& sizes, bool rotated)
      : stream_{stream},
        cublas_{cublas},
        rotated_{rotated},
        a_{sizes.a},
        b_{sizes.b},
        c_{sizes.c},
        flushed_{rotated ? kFlushedBytes : 1} {
    for (const auto& [operand, bytes] :
         {std::pair{&a_, sizes.a}, std::pair{&b_, sizes.b}, std::pair{&c_, sizes.c}}) {
      operand->use(bytes, false);
      operand->fill(stream_, Contents::Zeros, ProductType::Float32, 1);
    }
  }

  QuickTime time(const Shape& shape) {
    a_.use(shape.a_bytes(), rotated_);
    b_.use(shape.b_bytes(), rotated_);
    c_.use(shape.c_bytes(), rotated_);
    multiply(shape, 1);  // loads the kernels' code
    double each = timed(1, [&] { multiply(shape, 1); });
    if (each < kLongUs) each = std::min(each, timed(4, [&] { multiply(shape, 4); }));
    const auto count = static_cast<std::size_t>(
        each >= kLongUs ? 1 : std::clamp(std::ceil(kQuickTimingUs / each), kFewest, kMost));
    QuickTime result{.in_graph = each < kCallsDecideUs};
    std::optional<CapturedGraph> graph;
    if (result.in_graph) {
      graph.emplace(stream_, [&] { multiply(shape, count); });
      graph->executable(stream_);
    }
    std::array<double, kTimings> timings{};
    for (double& timing : timings) {
      timing = timed(count, [&] {
        if (graph) {
          cuda_check(cudaGraphLaunch(graph->executable(stream_), stream_));
        } else {
          multiply(shape, count);
        }
      });
    }
    std::ranges::sort(timings);
    result.us = timings[kTimings / 2];
    result.sm_clock_mhz = clock_mhz();
    return result;
  }

 private:
  void multiply(const Shape& shape, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      cublas_.multiply(shape, a_.slot(i), b_.slot(i), c_.slot(i));
    }
  }

  /// us of each of so many.
  template <typename Calls>
  double timed(std::size_t count, const Calls& calls) {
    if (rotated_) cuda_check(cudaMemsetAsync(flushed_.slot(0), 0, kFlushedBytes, stream_));
    cuda_check(cudaEventRecord(events_.at(0), stream_));
    calls();
    cuda_check(cudaEventRecord(events_.at(1), stream_));
    cuda_check(launch_count_cycles(stream_, static_cast<std::int64_t*>(device_cycles_.slot(0))));
    cuda_check(cudaEventSynchronize(events_.at(1)));
    return events_.ms_between(0, 1) * 1e3 / static_cast<double>(count);
  }

  /// What the SM's clock was behind the last timing.
  double clock_mhz() {
    cuda_check(cudaMemcpyAsync(cycles_.data(), device_cycles_.slot(0), sizeof(cycles_),
                               cudaMemcpyDeviceToHost, stream_));
    cuda_check(cudaStreamSynchronize(stream_));
    return 1e3 * static_cast<double>(cycles_[0]) / static_cast<double>(cycles_[1]);
  }

  cudaStream_t stream_;
  const ProductCublas& cublas_;
  bool rotated_;
  Operand a_, b_, c_, flushed_;
  Events events_;
  std::array<std::int64_t, 2> cycles_{};
  Operand device_cycles_{sizeof(cycles_)};
};

QuickTimer::QuickTimer(cudaStream_t stream, const ProductCublas& cublas,
                       const std::vector<Shape>& shapes, bool rotated) {
  const OperandSizes sizes = largest_operands(shapes, rotated);
  std::size_t free = 0;
  std::size_t total = 0;
  cuda_check(cudaMemGetInfo(&free, &total));
  const std::size_t needed = sizes.a + sizes.b + sizes.c + (rotated ? kFlushedBytes : 0);
  if (needed > free) {
    throw CannotHereError{fmt::format("operands need {:.1f} GB of GPU memory, {:.1f} are free",
                                      static_cast<double>(needed) / 1e9,
                                      static_cast<double>(free) / 1e9)};
  }
  impl_ = std::make_unique<Impl>(stream, cublas, sizes, rotated);
}
QuickTimer::~QuickTimer() = default;
QuickTime QuickTimer::time(const Shape& shape) { return impl_->time(shape); }

}  // namespace foretrace::hw
