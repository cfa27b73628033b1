#include "reports/uses/uses.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "reports/spans/span_class.h"
#include "reports/uses/intervals.h"

namespace foretrace::explain {
namespace {

/// What a GPU's spans say of it.
struct GpuSpans {
  Times kernels, copies, transfers, late, collectives;
  std::vector<const Span*> by_begin;
};

class Reader {
 public:
  explicit Reader(const Timeline& timeline) : timeline_{timeline} { read(); }

  std::vector<GpuTime> times() {
    std::vector<GpuTime> all;
    for (auto& [key, spans] : gpus_) all.push_back(time_of(key.first, key.second, spans));
    return all;
  }

 private:
  struct Call {
    std::uint32_t op, process;
    std::uint64_t instance;
    std::int64_t returned;
  };
  static auto key_of(const Call& call) { return std::tuple{call.op, call.instance, call.process}; }

  const Lane& lane_of(const Span& span) const { return timeline_.lanes[span.lane]; }
  const OpRow& op_of(const Span& span) const { return timeline_.ops[span.op]; }
  SpanClass kind_of(const Span& span) const {
    const bool on_host = lane_of(span).kind == LaneKind::HostThread;
    return (on_host ? on_host_ : on_device_)[span.op];
  }

  void read() {
    for (const OpRow& op : timeline_.ops) {
      on_host_.push_back(class_of(op, Lane{.kind = LaneKind::HostThread, .name = {}}));
      on_device_.push_back(class_of(op, Lane{.kind = LaneKind::Stream, .name = {}}));
    }
    std::vector<const Span*> collectives;
    for (const Span& span : timeline_.spans) {
      begin_ = std::min(begin_, span.begin_ns);
      end_ = std::max(end_, span.end_ns);
      const Lane& lane = lane_of(span);
      if (lane.device == kNoDevice) {
        if (span.part == 0) {
          calls_.push_back({span.op, lane.process, span.instance, span.end_ns});
        }
        if (kind_of(span) == SpanClass::HostWait)
          waits_[lane.process].emplace_back(span.begin_ns, span.end_ns);
      } else if (kind_of(span) == SpanClass::Nccl && !moves_to_one_peer(op_of(span))) {
        collectives.push_back(&span);
      }
    }
    std::ranges::stable_sort(calls_, {}, key_of);
    find_last_ranks(std::move(collectives));
    for (auto& [process, times] : waits_) times = joined(std::move(times));
    for (const Span& span : timeline_.spans) {
      const Lane& lane = lane_of(span);
      if (lane.device == kNoDevice || span.end_ns <= span.begin_ns) continue;
      if (kind_of(span) >= SpanClass::Waiting) continue;  // an engine's iteration is no kernel
      GpuSpans& gpu = gpus_[{lane.process, lane.device}];
      const std::pair time{span.begin_ns, span.end_ns};
      switch (kind_of(span)) {
        case SpanClass::Kernel:
          gpu.kernels.push_back(time);
          break;
        case SpanClass::Copy:
          gpu.copies.push_back(time);
          break;
        case SpanClass::Nccl:
          if (moves_to_one_peer(op_of(span))) {
            gpu.transfers.push_back(time);
          } else {
            const std::int64_t all_here = std::min(span.end_ns, all_here_.at(&span));
            gpu.late.emplace_back(span.begin_ns, all_here);
            gpu.collectives.push_back(time);
          }
          break;
        default:
          continue;
      }
      gpu.by_begin.push_back(&span);
    }
  }

  /// When the last rank of each collective has begun. Ranks may call it from different lines.
  void find_last_ranks(std::vector<const Span*> spans) {
    std::ranges::stable_sort(spans, {}, &Span::begin_ns);
    std::map<std::tuple<std::string, std::uint64_t, std::uint32_t, std::uint32_t>, std::uint64_t>
        counts;
    std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::vector<const Span*>>
        joined;
    for (const Span* span : spans) {
      const OpRow& op = op_of(*span);
      const Lane& lane = lane_of(*span);
      const std::uint64_t number = counts[{op.kind, op.size_bytes, lane.process, lane.device}]++;
      joined[{op.kind, op.size_bytes, number}].push_back(span);
    }
    for (const auto& [key, ranks] : joined) {
      for (const Span* span : ranks) all_here_[span] = ranks.back()->begin_ns;
    }
  }

  GpuTime time_of(std::uint32_t process, std::uint32_t device, GpuSpans& spans) {
    GpuTime time{.process = process, .device = device, .ns = end_ - begin_, .by_use = {}};
    Times taken;
    const auto take = [&](Use use, const Times& times) {
      const Times all = joined(times);
      for (const auto& [begin, end] : without(all, taken)) add(time, use, begin, end);
      Times both = taken;
      both.insert(both.end(), all.begin(), all.end());
      taken = joined(std::move(both));
    };
    take(Use::Kernel, spans.kernels);
    take(Use::Copy, spans.copies);
    take(Use::Bubble, spans.transfers);
    take(Use::Straggler, spans.late);
    take(Use::Communication, spans.collectives);
    std::ranges::sort(spans.by_begin, {}, &Span::begin_ns);
    for (const auto& [begin, end] : without({{begin_, end_}}, taken)) {
      split_idle(begin, end, spans, time);
    }
    std::ranges::sort(time.times, {}, &UseTime::begin_ns);
    return time;
  }

  static void add(GpuTime& time, Use use, std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    time.by_use[static_cast<std::size_t>(use)] += end - begin;
    time.times.push_back({begin, end, use});
  }

  /// Nothing runs from `begin` to `end`: who is to blame, by the call of what comes next.
  void split_idle(std::int64_t begin, std::int64_t end, const GpuSpans& spans,
                  GpuTime& time) const {
    const std::uint32_t process = time.process;
    const auto next = std::ranges::lower_bound(spans.by_begin, end, {}, &Span::begin_ns);
    const auto waits = waits_.find(process);
    // Behind its last work a stage of a pipeline waits for the stages behind it.
    if (next == spans.by_begin.end()) {
      return add(time, spans.transfers.empty() ? Use::Host : Use::Bubble, begin, end);
    }
    const Span& span = **next;
    // The last of those with its key.
    const std::tuple key{span.op, span.instance, process};
    const auto behind = std::ranges::upper_bound(calls_, key, {}, key_of);
    const bool is_known = behind != calls_.begin() && key_of(*(behind - 1)) == key;
    const std::int64_t queued = is_known ? std::clamp((behind - 1)->returned, begin, end) : begin;
    // From a wait of the host that ended in this gap, or just before it, to the next call's end.
    constexpr std::int64_t kJustBefore = 20'000;  // ns, a call or two
    const bool after_wait =
        waits != waits_.end() && std::ranges::any_of(waits->second, [&](const auto& wait) {
          return wait.second > begin - kJustBefore && wait.second <= queued;
        });
    // From the call to the kernel's begin, and between two kernels, the GPU needs some time, too.
    constexpr std::int64_t kLaunch = 10'000;  // ns
    const std::int64_t launched = end - queued <= kLaunch ? end : queued;
    add(time, after_wait ? Use::Synchronization : Use::Host, begin, launched);
    add(time, Use::Dependency, launched, end);
  }

  const Timeline& timeline_;
  std::int64_t begin_ = INT64_MAX, end_ = 0;
  std::vector<SpanClass> on_host_, on_device_;  ///< by op
  std::vector<Call> calls_;                     ///< by key_of()
  std::map<std::uint32_t, Times> waits_;
  std::map<const Span*, std::int64_t> all_here_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, GpuSpans> gpus_;
};

}  // namespace

bool moves_to_one_peer(const OpRow& op) {
  return op.kind.find("send") != std::string::npos || op.kind.find("recv") != std::string::npos;
}

std::string_view name_of(Use use) {
  constexpr std::array<std::string_view, kUses> kNames{
      "kernels",           "copies",    "bubble", "straggler", "communication", "synchronization",
      "launch-bound host", "dependency"};
  return kNames[static_cast<std::size_t>(use)];
}

std::vector<GpuTime> gpu_times(const Timeline& timeline) { return Reader{timeline}.times(); }

}  // namespace foretrace::explain
