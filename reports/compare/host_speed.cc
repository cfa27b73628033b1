#include "reports/compare/host_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

/// Starts of one host differ by as much.
constexpr double kAlike = 0.05;

}  // namespace

std::optional<HostSpeed> host_speed(const Origin& predicted, const Origin& measured) {
  if (predicted.measured || !measured.measured || !predicted.launch_ns) return std::nullopt;
  std::vector<double> starts;
  for (const ProcessStart& start : measured.starts) {
    if (const auto ns = mean_launch_ns(start)) starts.push_back(*ns);
  }
  if (starts.empty()) return std::nullopt;
  const auto [fastest, slowest] = std::ranges::minmax(starts);
  return HostSpeed{.predicted_ns = static_cast<double>(*predicted.launch_ns),
                   .measured_ns = median(starts),
                   .fastest_ns = fastest,
                   .slowest_ns = slowest,
                   .starts = starts.size()};
}

std::string host_speed_words(const Origin& predicted, const Origin& measured) {
  const auto speed = host_speed(predicted, measured);
  if (!speed) return {};
  std::string text =
      fmt::format("Host: a kernel's launch took {} to call", format_time(speed->measured_ns));
  if (speed->starts > 1) {
    text += fmt::format(" ({} .. {} in {} starts)", format_time(speed->fastest_ns),
                        format_time(speed->slowest_ns), speed->starts);
  }
  text += fmt::format(", {} predicted", format_time(speed->predicted_ns));
  if (std::abs(std::log(speed->factor())) <= std::log1p(kAlike)) return text + ".";
  if (speed->factor() < kSlowestHost || speed->factor() > kFastestHost) {
    return text + ": that is no host's speed, and says nothing of the others.";
  }
  text += fmt::format(": this host was {:.2f} times as fast.", speed->factor());
  // Its factor is on the machine file's host, not on one that was changed already.
  const auto changes = predicted.machine.find(" with ");
  if (changes != std::string::npos &&
      predicted.machine.find("host", changes) != std::string::npos) {
    return text;
  }
  return text + fmt::format(" simulate --with host={:.2f}x predicts for it.", speed->factor());
}

}  // namespace foretrace
