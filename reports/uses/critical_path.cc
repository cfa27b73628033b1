#include "reports/uses/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace foretrace::explain {
namespace {

class PathReader {
 public:
  explicit PathReader(const Timeline& timeline)
      : timeline_{timeline}, by_lane_(timeline.lanes.size()) {
    for (const Span& span : timeline.spans) {
      if (kind_of(span) >= SpanClass::Waiting) continue;  // requests wait for each other, not calls
      begin_ = std::min(begin_, span.begin_ns);
      const Lane& lane = timeline.lanes[span.lane];
      if (lane.device == kNoDevice) {
        if (span.part == 0) calls_[{span.op, span.instance, lane.process}] = &span;
        by_lane_[span.lane].push_back(&span);
      } else if (span.end_ns > span.begin_ns && kind_of(span) != SpanClass::Order) {
        on_devices_.push_back(&span);
        by_lane_[span.lane].push_back(&span);
      }
    }
    for (auto& spans : by_lane_) std::ranges::stable_sort(spans, {}, &Span::end_ns);
    std::ranges::stable_sort(on_devices_, {}, &Span::end_ns);
  }

  CriticalPath read() const {
    CriticalPath path;
    const Span* span = last_span();
    if (span == nullptr) return path;
    std::int64_t at = span->end_ns;
    path.ns = at - begin_;
    const auto wait_until = [&](std::int64_t other_end) {
      if (at == other_end) return;
      path.nothing_ns += at - other_end;
      path.parts.push_back({other_end, at, nullptr});
    };
    for (; span != nullptr; span = before(*span)) {
      const std::int64_t end = std::min(span->end_ns, at);  // later: it ran beside what came next
      wait_until(end);
      path.by_class[static_cast<std::size_t>(kind_of(*span))] += end - span->begin_ns;
      path.parts.push_back({span->begin_ns, end, span});
      at = span->begin_ns;
    }
    wait_until(begin_);
    std::ranges::reverse(path.parts);
    return path;
  }

 private:
  using Spans = std::vector<const Span*>;
  using Call = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;  ///< op, instance, process

  SpanClass kind_of(const Span& span) const {
    return class_of(timeline_.ops[span.op], timeline_.lanes[span.lane]);
  }

  /// Who only waits is on nobody's path.
  bool is_work(const Span& span) const {
    return span.end_ns > span.begin_ns && kind_of(span) != SpanClass::HostWait;
  }

  const Span* last_span() const {
    const Span* last = on_devices_.empty() ? nullptr : on_devices_.back();
    for (const Spans& spans : by_lane_) {
      for (const Span* span : spans) {
        if (is_work(*span) && (last == nullptr || span->end_ns > last->end_ns)) last = span;
      }
    }
    return last;
  }

  /// The last of `spans` that ended by then; of none, end().
  static Spans::const_reverse_iterator ended_by(const Spans& spans, std::int64_t ns) {
    const auto behind = std::ranges::upper_bound(spans, ns, {}, &Span::end_ns);
    return std::make_reverse_iterator(behind);
  }

  const Span* before(const Span& span) const {
    const auto device = ended_by(on_devices_, span.begin_ns);
    const Span* const on_device = device == on_devices_.rend() ? nullptr : *device;
    const Lane& lane = timeline_.lanes[span.lane];
    if (lane.device == kNoDevice) return before_call(span, on_device);
    const auto call = calls_.find({span.op, span.instance, lane.process});
    if (const Span* const own = right_before(span)) {
      const bool was_queued = call == calls_.end() || call->second->end_ns <= own->end_ns;
      if (was_queued) return own;
    }
    if (call == calls_.end() || call->second->end_ns > span.begin_ns || !is_work(*call->second)) {
      return on_device;
    }
    const bool device_is_later = on_device != nullptr && on_device->end_ns >= call->second->end_ns;
    if (device_is_later) return on_device;
    const Span* const running = running_beside(span);
    return running != nullptr ? running : call->second;
  }

  /// A kernel of the process that runs when a span begins: the GPU did not wait for its call.
  const Span* running_beside(const Span& span) const {
    const std::uint32_t process = timeline_.lanes[span.lane].process;
    for (std::size_t i = 0; i < by_lane_.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      if (lane.process != process || lane.device == kNoDevice) continue;
      const auto at = std::ranges::upper_bound(by_lane_[i], span.begin_ns, {}, &Span::end_ns);
      const bool runs = at != by_lane_[i].end() && (*at)->begin_ns < span.begin_ns;
      if (runs && kind_of(**at) == SpanClass::Kernel) return *at;
    }
    return nullptr;
  }

  /// Of a device's stream: the one before, where this one follows at once.
  const Span* right_before(const Span& span) const {
    constexpr std::int64_t kAtOnce = 10'000;  // ns: the GPU needs some time between two kernels
    const Spans& own = by_lane_[span.lane];
    const auto before = ended_by(own, span.begin_ns);
    if (before == own.rend() || span.begin_ns - (*before)->end_ns > kAtOnce) return nullptr;
    return *before;
  }

  const Span* before_call(const Span& span, const Span* on_device) const {
    const Spans& own = by_lane_[span.lane];
    bool waited = false;
    for (auto at = ended_by(own, span.begin_ns); at != own.rend(); ++at) {
      if (*at == &span || (*at)->end_ns == (*at)->begin_ns) continue;
      if (is_work(**at)) return *at;
      waited = true;
      if (on_device != nullptr && on_device->end_ns >= (*at)->begin_ns) break;
    }
    return waited ? on_device : nullptr;
  }

  const Timeline& timeline_;
  std::int64_t begin_ = INT64_MAX;
  std::map<Call, const Span*> calls_;
  std::vector<Spans> by_lane_;  ///< by their ends
  Spans on_devices_;
};

}  // namespace

CriticalPath critical_path(const Timeline& timeline) { return PathReader{timeline}.read(); }

}  // namespace foretrace::explain
