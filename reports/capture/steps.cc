#include "reports/capture/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "scenarios/base/text/errors.h"

namespace foretrace::capture {
namespace {

bool is_work(const Event& event) {
  return event.kind == EventKind::Kernel || event.kind == EventKind::Copy ||
         event.kind == EventKind::Fill;
}

/// The host's parts: marks that do not lie within another one.
std::vector<Window> marked(const Process& process) {
  std::vector<Window> windows;
  Window whole = process.extent;
  const bool knows_extent = whole.end > whole.begin;
  if (!process.events.empty() && !knows_extent) whole.begin = process.events.front().begin;
  for (const Event& event : process.events) {
    whole.end = std::max(whole.end, event.end);
    whole.begin = std::min(whole.begin, event.begin);
    if (event.kind != EventKind::Iteration) continue;
    if (windows.empty() || event.begin >= windows.back().end) {
      windows.push_back({event.begin, event.end});
    }
  }
  // What the host does between two marks belongs to the first, if it is no more than a pause.
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
    const std::int64_t pause = windows[i + 1].begin - windows[i].end;
    if (pause <= windows[i].end - windows[i].begin) windows[i].end = windows[i + 1].begin;
  }
  if (windows.empty()) windows.push_back(whole);
  return windows;
}

/// Until when the GPU was busy with what the trace does not have: the first work of a stream was
/// called long before it began, and nothing that is known ended right before. `begin` where not.
std::int64_t end_of_hidden(const Process& process, const Started& started, std::int64_t begin) {
  constexpr std::int64_t kStarts = 200'000;  // ns, of a first launch
  constexpr std::int64_t kBehind = 10'000;
  std::map<std::pair<std::uint32_t, std::int64_t>, const Event*> first;  // by device and stream
  std::vector<std::int64_t> ends;
  std::unordered_map<const Event*, const Event*> call_of;
  for (const Event& event : process.events) {
    if (event.kind == EventKind::Call) {
      for (const Event* work : started.by(event)) call_of[work] = &event;
    }
    if (!is_work(event)) continue;
    first.try_emplace({event.device, event.lane}, &event);
    ends.push_back(event.end);
  }
  std::ranges::sort(ends);
  for (const auto& [lane, work] : first) {
    const auto call = call_of.find(work);
    if (call == call_of.end() || call->second->end + kStarts > work->begin) continue;
    const auto later = std::ranges::upper_bound(ends, work->begin);
    const bool is_behind_known = later != ends.begin() && *(later - 1) + kBehind >= work->begin;
    if (!is_behind_known) begin = std::max(begin, work->begin);
  }
  return begin;
}

}  // namespace

Started::Started(const Process& process) {
  std::unordered_map<std::uint64_t, std::vector<const Event*>> calls;  // by begin
  for (const Event& event : process.events) {
    if (event.kind == EventKind::Call && event.correlation != 0) {
      calls[event.correlation].push_back(&event);
    }
  }
  for (const Event& event : process.events) {
    if (!is_work(event)) continue;
    const auto found = event.correlation == 0 ? calls.end() : calls.find(event.correlation);
    if (found == calls.end()) {
      orphans_.push_back(&event);
      continue;
    }
    // One number of several calls: the last of them that was made before the work began.
    const std::vector<const Event*>& all = found->second;
    auto later = std::ranges::upper_bound(all, event.begin, {}, &Event::begin);
    if (later != all.begin()) --later;
    work_[*later].push_back(&event);
    first_begin_ = std::min(first_begin_, event.begin);
  }
}

std::int64_t Started::first_begin() const {
  constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
  return first_begin_ == kNone ? std::numeric_limits<std::int64_t>::min() : first_begin_;
}

const std::vector<const Event*>& Started::by(const Event& call) const {
  static const std::vector<const Event*> kNone;
  const auto found = work_.find(&call);
  return found == work_.end() ? kNone : found->second;
}

Early early_work(const Process& process, const Started& started) {
  constexpr std::int64_t kClocksDiffer = 2'000;  // ns
  Early early;
  for (const Event& event : process.events) {
    if (event.kind != EventKind::Call) continue;
    for (const Event* work : started.by(event)) {
      if (work->begin >= event.begin - kClocksDiffer) continue;
      ++early.works;
      early.most = std::max(early.most, event.begin - work->begin);
    }
  }
  return early;
}

std::vector<Step> steps_of(const Process& process, const Started& started) {
  const std::vector<Window> windows = marked(process);
  std::vector<Step> steps(windows.size());
  std::vector<std::vector<Window>> ran(windows.size());  // each one's own work
  std::int64_t before = end_of_hidden(process, started, windows.front().begin);
  const auto step_at = [&](std::int64_t time) {
    const auto later = std::ranges::upper_bound(windows, time, {}, &Window::begin);
    return later - windows.begin() - 1;
  };
  std::vector<std::int64_t> last(windows.size());
  for (std::size_t i = 0; i < windows.size(); ++i) last[i] = windows[i].begin;
  const auto take = [&](const Event& work, std::int64_t called) {
    const auto step = step_at(called);
    if (step < 0) {
      before = std::max(before, work.end);
      return;
    }
    const auto index = static_cast<std::size_t>(step);
    if (called >= windows[index].end) return;  // behind the last mark
    last[index] = std::max(last[index], work.end);
    ran[index].push_back({work.begin, work.end});
  };
  for (const Event& event : process.events) {
    if (event.kind != EventKind::Call) continue;
    for (const Event* work : started.by(event)) take(*work, event.begin);
  }
  // Before anything of a known call ran: what was called before the profiler began.
  const std::int64_t first = started.first_begin();
  for (const Event* work : started.orphans()) {
    if (work->begin < first) before = std::max(before, work->end);
    if (work->begin >= first) take(*work, work->begin);
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    Step& step = steps[i];
    step.host = windows[i];
    step.whole = {std::max(windows[i].begin, before), std::max(windows[i].end, last[i])};
    step.backlog = step.whole.begin - windows[i].begin;
    step.whole.end = std::max(step.whole.end, step.whole.begin);
    step.works = ran[i].size();
    for (const Window& work : ran[i]) {
      step.beside += std::max<std::int64_t>(0, std::min(work.end, step.whole.begin) - work.begin);
    }
    before = std::max(before, last[i]);
  }
  return steps;
}

Step step_of(const std::vector<Step>& steps, const Process& process,
             std::optional<std::size_t> iteration) {
  std::size_t last = steps.size() - 1;
  while (last > 0 && steps[last].works == 0) --last;
  const std::size_t wanted = iteration.value_or(last);
  if (wanted < steps.size()) return steps[wanted];
  throw UsageError{fmt::format("{}: no iteration {}: there are {}, from 0 on", process.file, wanted,
                               steps.size())};
}

}  // namespace foretrace::capture
