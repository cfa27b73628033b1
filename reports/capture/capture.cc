#include "reports/capture/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "reports/timeline/timeline_check.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::capture {

std::uint32_t Names::add(std::string_view name) {
  const auto [found, is_new] =
      index_.try_emplace(std::string{name}, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(&found->first);
  return found->second;
}

void finish(Process& process) {
  std::ranges::stable_sort(process.events, {}, &Event::begin);
  std::ranges::stable_sort(process.memory, {}, &MemoryEvent::at);
}

namespace {

bool is_of_gpu(const Event& event) {
  return event.kind != EventKind::Call && event.kind != EventKind::Iteration;
}

/// "cpu_op (1200), user_annotation (43)": the most frequent ones.
std::string categories(const Process& process) {
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const auto& [name, count] : process.left_out) all.emplace_back(count, name);
  std::ranges::sort(all, std::ranges::greater{});
  std::string text;
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", all[i].second, all[i].first);
  }
  return text.empty() ? "nothing" : text;
}

/// Times of all processes are on one axis, as far as a timeline reaches.
void check_times(const Capture& capture) {
  constexpr double kNsOfADay = 86'400e9;
  const Process* earliest = nullptr;
  const Process* latest = nullptr;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const Process& process : capture.processes) {
    const auto take = [&](std::int64_t from, std::int64_t to) {
      if (from < begin) {
        begin = from;
        earliest = &process;
      }
      if (to > end) {
        end = to;
        latest = &process;
      }
    };
    for (const Event& event : process.events) take(event.begin, event.end);
    for (const MemoryEvent& event : process.memory) take(event.at, event.at);
  }
  if (earliest == nullptr) return;
  const double apart = static_cast<double>(end) - static_cast<double>(begin);
  if (apart <= static_cast<double>(kLongestTimelineNs)) return;
  const std::string days = fmt::format("{:.0f} days", apart / kNsOfADay);
  throw UsageError{
      earliest == latest
          ? fmt::format("{}: {} between its first and its last event: a timeline has 104",
                        earliest->file, days)
          : fmt::format("{} and {}: their clocks are {} apart: a timeline has 104\n  hint: traces "
                        "of one run have one clock",
                        earliest->file, latest->file, days)};
}

}  // namespace

void check(const Capture& capture) {
  std::map<std::int64_t, const Process*> ranks;
  for (const Process& process : capture.processes) {
    if (process.rank < 0) continue;
    const auto [found, is_new] = ranks.try_emplace(process.rank, &process);
    if (is_new) continue;
    throw UsageError{
        fmt::format("{} and {} are both of rank {}\n  hint: one trace of each rank, of one run",
                    found->second->file, process.file, process.rank)};
  }
  for (const Process& process : capture.processes) {
    if (std::ranges::any_of(process.events, is_of_gpu)) continue;
    throw UsageError{fmt::format(
        "{}: no kernel and no copy of a GPU, but {}\n  hint: record them: torch.profiler with "
        "ProfilerActivity.CUDA (XPU on Intel's), nsys with --trace=cuda",
        process.file, categories(process))};
  }
  check_times(capture);
}

}  // namespace foretrace::capture
