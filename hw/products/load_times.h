// What a stretch of back-to-back products says: their time while the GPU is rested, and their time
// once the load has pulled its clock down.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace foretrace::hw {

/// The windows, in ms since the load began. The first millisecond is the ramp out of idle; the
/// clock falls within 50 to 100 ms (measured on H200), so what begins after 150 ms is sustained.
inline constexpr double kBurstFromMs = 1;
inline constexpr double kBurstToMs = 30;
inline constexpr double kSustainedWindowMs = 30;

struct LoadTimes {
  double burst_us{};  ///< median time of one product within the burst window
  std::size_t burst_timings{};
  double sustained_us{};  ///< the same within the last kSustainedWindowMs
  std::size_t sustained_timings{};
  double sustained_from_ms{};  ///< where the sustained window's first timing begins
  double load_ms{};
};

/// `ends_ms`: when each timing ended, ms since the load began, increasing, not empty; a timing is
/// `products` products. One that crosses the burst window's end counts when it is the first.
LoadTimes load_times(std::span<const double> ends_ms, std::size_t products);

/// flop / us, in 10^12 per second.
double tflops(double flop, double us);

/// Products per timing: enough for `timing_us`, at most `most`.
std::size_t products_per_timing(double product_us, double timing_us, std::size_t most);

}  // namespace foretrace::hw
