#include "reports/capture/capture.h"

#include <algorithm>

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

std::vector<Window> iterations_of(const Process& process) {
  std::vector<Window> windows;
  Window whole{process.events.empty() ? 0 : process.events.front().begin, 0};
  for (const Event& event : process.events) {
    whole.end = std::max(whole.end, event.end);
    if (event.kind != EventKind::Iteration) continue;
    if (windows.empty() || event.begin >= windows.back().end) {
      windows.push_back({event.begin, event.end});
    }
  }
  // A mark ends with the host's calls; what they started on the GPU may still run.
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const bool is_last = i + 1 == windows.size();
    windows[i].end = is_last ? whole.end : windows[i + 1].begin;
  }
  if (windows.empty()) windows.push_back(whole);
  return windows;
}

}  // namespace foretrace::capture
