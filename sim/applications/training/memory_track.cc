#include "sim/applications/training/memory_track.h"

#include <algorithm>

namespace foretrace::sim {
namespace {

using training::MemoryChange;
using training::MemoryCurve;
using training::Moment;
using training::Section;

constexpr std::int64_t kSegment = 2LL << 20;  // bytes: c10's kRoundLarge

/// In which pass of the loop of passes, which is inside the loop of steps.
std::int64_t pass_of(const Span& span, const OpRow& op) {
  std::uint64_t inner = 1;
  for (std::size_t i = 2; i < op.loops.size(); ++i) inner *= op.loops[i];
  return op.loops.size() < 2 ? 0 : static_cast<std::int64_t>(span.instance / inner % op.loops[1]);
}

/// Where each operation stands on a curve, which all of its processes and turns have in common.
class Places {
 public:
  Places(const MemoryCurve& curve, std::size_t ops) : curve_{curve}, known_(ops) {}

  /// Behind the changes of a call and those before.
  std::vector<MemoryChange>::const_iterator behind(const Span& span, const OpRow& op) {
    Known& known = known_[span.op];
    const auto id = std::int64_t{span.op};
    if (!known.is_known) {
      known.section = std::ranges::upper_bound(curve_.sections, id, {}, &Section::op) - 1;
      known.behind = behind(*known.section, 0, id);
      known.is_known = true;
    }
    if (known.section->calls <= 1) return known.behind;
    return behind(*known.section, std::min(pass_of(span, op), known.section->calls - 1), id);
  }

 private:
  struct Known {
    std::vector<Section>::const_iterator section;
    std::vector<MemoryChange>::const_iterator behind;  ///< in the first pass
    bool is_known = false;
  };
  std::vector<MemoryChange>::const_iterator behind(const Section& section, std::int64_t pass,
                                                   std::int64_t op) const {
    const Moment at{section.group + pass, op};
    return std::ranges::upper_bound(curve_.changes, at, {}, &MemoryChange::at);
  }

  const MemoryCurve& curve_;
  std::vector<Known> known_;  ///< by op
};

class Track {
 public:
  Track(const MemoryCurve& curve, Places& places, std::uint32_t process)
      : curve_{curve}, places_{places}, process_{process} {}

  /// A call of the thread, in their order.
  void call(const Span& span, const OpRow& op, std::vector<MemorySample>& out) {
    const auto next = places_.behind(span, op);
    if (next == curve_.changes.begin() || next == last_) return;
    const MemoryChange& now = *(next - 1);
    std::int64_t most = now.most;
    for (auto change = last_; change < next; ++change) most = std::max(most, change->most);
    last_ = next;
    add(span.begin_ns, most, out);
    if (most > now.bytes) add(span.end_ns, now.bytes, out);
  }

 private:
  void add(std::int64_t at_ns, std::int64_t bytes, std::vector<MemorySample>& out) {
    reserved_ = std::max(reserved_, (bytes + kSegment - 1) / kSegment * kSegment);
    out.push_back({process_, 0, at_ns, bytes, reserved_});
  }

  const MemoryCurve& curve_;
  Places& places_;
  std::uint32_t process_;
  std::vector<MemoryChange>::const_iterator last_ = curve_.changes.end();
  std::int64_t reserved_ = 0;
};

}  // namespace

std::vector<MemorySample> memory_track(const Timeline& timeline,
                                       const std::vector<MemoryCurve>& curves) {
  std::vector<std::vector<std::uint32_t>> calls;  // spans of each process's host thread
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    const Lane& lane = timeline.lanes[span.lane];
    if (span.part != 0 || lane.kind != LaneKind::HostThread) continue;
    if (calls.size() <= lane.process) calls.resize(lane.process + 1);
    calls[lane.process].push_back(i);
  }
  std::vector<MemorySample> samples;
  for (const MemoryCurve& curve : curves) {
    Places places{curve, timeline.ops.size()};
    for (const std::int64_t process : curve.processes) {
      if (static_cast<std::size_t>(process) >= calls.size()) continue;
      auto& mine = calls[static_cast<std::size_t>(process)];
      const auto begin = [&](std::uint32_t i) { return timeline.spans[i].begin_ns; };
      if (!std::ranges::is_sorted(mine, {}, begin)) std::ranges::stable_sort(mine, {}, begin);
      Track track{curve, places, static_cast<std::uint32_t>(process)};
      for (const std::uint32_t i : mine) {
        const Span& span = timeline.spans[i];
        track.call(span, timeline.ops[span.op], samples);
      }
    }
  }
  return samples;
}

}  // namespace foretrace::sim
