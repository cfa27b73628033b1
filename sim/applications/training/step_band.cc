#include "sim/applications/training/step_band.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/trust/blind.h"

namespace foretrace::sim {
namespace {

// Of 109 steps that PyTorch was measured in and whose GPU decides (reports/measured/pytorch_steps)
// 92 % lie within kGpu; kHost was chosen by all of 176, nine starts on one H100 and 1 to 8 H200s.
constexpr double kGpu = 0.035;  ///< where the GPU idles hardly ever
constexpr double kHost = 0.30;  ///< where it idles half of the step or more: the host's speed

bool is_of_one_node(const Timeline& timeline) {
  return std::ranges::all_of(timeline.lanes, [](const Lane& lane) { return lane.node == 0; });
}

}  // namespace

StepBand step_band(const Machine& machine, const Timeline& timeline, const RegionSamples& step,
                   const StepUsage& usage) {
  const std::optional<double> collectives = blind_spread(machine, Param::NvlinkBandwidth);
  const bool is_measured =
      machine.has(Param::EagerForward) && blind_spread(machine, Param::EagerForward);
  if (!is_measured || !is_of_one_node(timeline)) return {step.low_factor, step.high_factor};
  const double host = kHost * std::min(1.0, 2 * usage.own().idle);
  const double exposed = collectives.value_or(0) * usage.own().exposed();
  const double high = 1 + std::sqrt(kGpu * kGpu + host * host + exposed * exposed);
  return {1 / high, high};
}

void set_step_bands(Timeline& timeline, const Machine& machine, const StepUsage& usage) {
  const RegionSamples* const last = last_step(timeline);
  if (last == nullptr) return;
  const StepBand band = step_band(machine, timeline, *last, usage);
  for (RegionSamples& region : timeline.regions) {
    if (region.name != last->name) continue;
    region.low_factor = band.low;
    region.high_factor = band.high;
  }
}

}  // namespace foretrace::sim
