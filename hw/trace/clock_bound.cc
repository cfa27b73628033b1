#include "hw/trace/clock_bound.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/kernels.h"
#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr int kBracketsPerDevice = 50;
constexpr std::int64_t kKernelNs = 1000;

}  // namespace

ClockError clock_error(const std::vector<ClockBracket>& brackets, int ordinal) {
  // begin + error >= launched and end + error <= waited for the true times, in every bracket.
  constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  ClockError error{kUnknown, kUnknown};
  for (const ClockBracket& bracket : brackets) {
    if (bracket.ordinal != ordinal || bracket.end_ns == 0) continue;
    error.late_ns = std::min(error.late_ns, bracket.begin_ns - bracket.launched_ns);
    error.early_ns = std::min(error.early_ns, bracket.waited_ns - bracket.end_ns);
  }
  if (error.late_ns == kUnknown) return {0, 0};
  // A bracket that contradicts itself shows an error of that size.
  return {std::abs(error.early_ns), std::abs(error.late_ns)};
}

ClockError worst(const std::vector<ClockError>& errors) {
  ClockError result;
  for (const ClockError& error : errors) {
    result.early_ns = std::max(result.early_ns, error.early_ns);
    result.late_ns = std::max(result.late_ns, error.late_ns);
  }
  return result;
}

std::int64_t bound_over_processes(const Processes& processes, const ClockError& worst) {
  return bound_ns({processes.largest(worst.early_ns), processes.largest(worst.late_ns)});
}

std::vector<ClockBracket> launch_brackets(int first_ordinal, int devices) {
  std::vector<ClockBracket> brackets;
  for (int ordinal = first_ordinal; ordinal < first_ordinal + devices; ++ordinal) {
    use_device(ordinal);
    for (int i = 0; i < kBracketsPerDevice; ++i) {
      const OperationMark mark{{kBracketOp, brackets.size()}};
      ClockBracket bracket;
      bracket.ordinal = ordinal;
      bracket.launched_ns = now_ns();
      cuda_check(launch_spin(cudaStreamLegacy, DeviceLimits{}, SpinClock{}, kKernelNs, 1));
      cuda_check(cudaStreamSynchronize(cudaStreamLegacy));
      bracket.waited_ns = now_ns();
      brackets.push_back(bracket);
    }
  }
  return brackets;
}

void fill_brackets(std::vector<ClockBracket>& brackets,
                   const std::vector<DeviceActivity>& activities) {
  for (const DeviceActivity& activity : activities) {
    if (!activity.cause || activity.cause->op != kBracketOp) continue;
    if (activity.cause->instance >= brackets.size()) continue;
    ClockBracket& bracket = brackets[activity.cause->instance];
    bracket.begin_ns = activity.begin_ns;
    bracket.end_ns = activity.end_ns;
  }
}

}  // namespace foretrace::hw
