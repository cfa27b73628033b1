#include "reports/capture/waits.h"

#include <algorithm>

#include "reports/capture/kernel_name.h"

namespace foretrace::capture {

void InFlight::add(const Launched& work) {
  by_end_.emplace(work.end, all_.size());
  last_[work.lane] = all_.size();
  all_.push_back(work);
  ends_.push(work.end);
  latest_end_ = std::max(latest_end_, work.end);
}

const Launched* InFlight::last_on(std::int64_t lane) const {
  const auto found = last_.find(lane);
  return found == last_.end() ? nullptr : &all_[found->second];
}

const Launched* InFlight::ended_within(std::int64_t from, std::int64_t until,
                                       std::optional<std::int64_t> but_lane) const {
  constexpr int kMost = 64;  // of one stream they end one behind the other
  auto next = by_end_.upper_bound(until);
  for (int i = 0; i < kMost && next != by_end_.begin(); ++i) {
    --next;
    if (next->first < from) return nullptr;
    const Launched& work = all_[next->second];
    if (!but_lane || work.lane != *but_lane) return &work;
  }
  return nullptr;
}

std::size_t InFlight::queued(std::int64_t at) {
  while (!ends_.empty() && ends_.top() <= at) ends_.pop();
  return ends_.size();
}

std::vector<std::uint32_t> ran_at_once(const Capture& capture, const Process& process) {
  constexpr std::size_t kMostAtOnce = 64;
  std::vector<std::uint32_t> widths(process.events.size(), 1);
  std::vector<std::size_t> running;  // one of each stream, but for clocks that are not exact
  for (std::size_t i = 0; i < process.events.size(); ++i) {
    const Event& event = process.events[i];
    if (event.kind != EventKind::Kernel || is_nccl(capture.names[event.name])) continue;
    std::erase_if(running, [&](std::size_t one) {
      const Event& other = process.events[one];
      return other.end <= event.begin || other.lane == event.lane;
    });
    if (running.size() >= kMostAtOnce) running.erase(running.begin());
    running.push_back(i);
    for (const std::size_t one : running) {
      widths[one] = std::max(widths[one], static_cast<std::uint32_t>(running.size()));
    }
  }
  return widths;
}

}  // namespace foretrace::capture
