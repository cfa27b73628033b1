// Which work runs beside which: region times can agree although the schedules do not.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reports/compare/compare.h"
#include "reports/spans/span_join.h"

namespace foretrace {
namespace {

/// A pair differs when its shares are further apart than this: of the whole, or of the larger share
/// where many executions run at once.
constexpr double kShareApart = 0.25;
/// And its times by this share of the run: what shifts at the edges of long work is no schedule.
constexpr double kTimeApart = 0.02;

using OpPair = std::pair<std::uint32_t, std::uint32_t>;

/// Device time of every operation, and of every two that run at once.
struct DeviceTime {
  std::map<std::uint32_t, double> of_op;
  std::map<OpPair, double> beside;
  double run_ns = 0;  ///< from the first span's begin to the last one's end
};

/// Calls `visit` with each two spans of one process, on different streams, that overlap.
template <class Visit>
void for_each_overlap(std::vector<const Span*>& spans, const Visit& visit) {
  std::ranges::sort(spans, {}, &Span::begin_ns);
  std::vector<const Span*> running;
  for (const Span* span : spans) {
    std::erase_if(running, [&](const Span* other) { return other->end_ns <= span->begin_ns; });
    for (const Span* other : running) {
      if (other->lane != span->lane) visit(*other, *span);
    }
    running.push_back(span);
  }
}

DeviceTime device_time(const Timeline& timeline) {
  DeviceTime time;
  std::map<std::uint32_t, std::vector<const Span*>> by_process;
  std::int64_t end_ns = first_begin_ns(timeline);
  for (const Span& span : timeline.spans) {
    const Lane& lane = timeline.lanes[span.lane];
    if (lane.kind != LaneKind::Stream || span.part == 0) continue;
    time.of_op[span.op] += static_cast<double>(span.end_ns - span.begin_ns);
    by_process[lane.process].push_back(&span);
    end_ns = std::max(end_ns, span.end_ns);
  }
  time.run_ns = static_cast<double>(end_ns - first_begin_ns(timeline));
  for (auto& [process, spans] : by_process) {
    for_each_overlap(spans, [&](const Span& a, const Span& b) {
      time.beside[std::minmax(a.op, b.op)] +=
          static_cast<double>(std::min(a.end_ns, b.end_ns) - b.begin_ns);
    });
  }
  return time;
}

double share_of(const DeviceTime& time, const OpPair& ops, double ns) {
  const auto a = time.of_op.find(ops.first);
  const auto b = time.of_op.find(ops.second);
  if (a == time.of_op.end() || b == time.of_op.end()) return 0;
  const double shorter = std::min(a->second, b->second);
  return shorter > 0 ? ns / shorter : 0;
}

}  // namespace

std::vector<OverlapRow> compare_overlaps(const Timeline& first, const Timeline& second) {
  const DeviceTime a = device_time(first);
  const DeviceTime b = device_time(second);
  const bool both_have = !a.of_op.empty() && !b.of_op.empty();
  if (!both_have) return {};
  // What a framework did in the program's stead has other operations: of them, those of both sides.
  const bool is_captured = std::ranges::any_of(first.ops, &OpRow::captured);
  const auto counts = [&](const OpPair& ops) {
    const auto is_on_both = [&](std::uint32_t op) {
      return a.of_op.contains(op) && b.of_op.contains(op);
    };
    return !is_captured || (is_on_both(ops.first) && is_on_both(ops.second));
  };
  std::map<OpPair, std::pair<double, double>> pairs;
  for (const auto& [ops, ns] : a.beside) {
    if (counts(ops)) pairs[ops].first = ns;
  }
  for (const auto& [ops, ns] : b.beside) {
    if (counts(ops)) pairs[ops].second = ns;
  }
  std::vector<OverlapRow> rows;
  for (const auto& [ops, ns] : pairs) {
    OverlapRow row{.a = ops.first,
                   .b = ops.second,
                   .first_ns = ns.first,
                   .second_ns = ns.second,
                   .first_share = share_of(a, ops, ns.first),
                   .second_share = share_of(b, ops, ns.second)};
    const double larger = std::max({1.0, row.first_share, row.second_share});
    row.differs = std::abs(row.first_share - row.second_share) > kShareApart * larger &&
                  std::abs(ns.first - ns.second) > kTimeApart * b.run_ns;
    rows.push_back(row);
  }
  std::ranges::stable_sort(rows, std::greater{}, [](const OverlapRow& row) {
    return std::abs(row.first_ns - row.second_ns);
  });
  return rows;
}

}  // namespace foretrace
