// What a framework's own run of a step has beside its regions: kernels by name, and memory.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "reports/compare/compare.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

using DeviceKey = std::pair<std::uint32_t, std::uint32_t>;  // process, device

/// Bytes by device.
std::map<DeviceKey, std::int64_t> peaks_of(const Timeline& timeline) {
  std::map<DeviceKey, std::int64_t> peaks;
  for (const MemoryPeak& peak : timeline.memory_peaks) {
    peaks[{peak.process, peak.device}] = peak.allocated;
  }
  if (!peaks.empty()) return peaks;
  for (const MemorySample& sample : timeline.memory) {
    std::int64_t& most = peaks[{sample.process, sample.device}];
    most = std::max(most, sample.allocated);
  }
  return peaks;
}

}  // namespace

void join_captured(Timeline& first, Timeline& second) {
  std::map<std::pair<std::string, std::string>, std::uint32_t> known;
  for (std::size_t i = program_ops(first); i < first.ops.size(); ++i) {
    known.try_emplace({first.ops[i].kind, first.ops[i].label}, static_cast<std::uint32_t>(i));
  }
  std::vector<std::uint32_t> place(second.ops.size());
  std::iota(place.begin(), place.end(), 0U);
  for (std::size_t i = program_ops(second); i < second.ops.size(); ++i) {
    const OpRow& row = second.ops[i];
    const auto [found, is_new] =
        known.try_emplace({row.kind, row.label}, static_cast<std::uint32_t>(first.ops.size()));
    if (is_new) first.ops.push_back(row);
    auto& loops = first.ops[found->second].loops;
    loops = std::max(loops, row.loops);  // so that both sides' executions are within
    place[i] = found->second;
  }
  for (Span& span : second.spans) span.op = place[span.op];
  second.ops = first.ops;
}

std::vector<MemoryRow> compare_memory(const Timeline& first, const Timeline& second) {
  std::map<DeviceKey, MemoryRow> rows;
  for (const auto& [device, bytes] : peaks_of(first)) rows[device].first = bytes;
  for (const auto& [device, bytes] : peaks_of(second)) rows[device].second = bytes;
  std::vector<MemoryRow> all;
  for (auto& [device, row] : rows) {
    row.process = device.first;
    row.device = device.second;
    if (row.first && row.second && *row.second > 0) {
      row.error =
          relative_difference(static_cast<double>(*row.first), static_cast<double>(*row.second));
    }
    all.push_back(row);
  }
  return all;
}

}  // namespace foretrace
