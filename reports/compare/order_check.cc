#include "reports/compare/order_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "reports/table/text_table.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

/// From the first span's begin to the last one's end; a group or a graph has several.
struct SpanOfNode {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  bool is_empty() const { return begin_ns > end_ns; }
};

class OrderChecker {
 public:
  OrderChecker(const Program& program, const HappensBefore& order, const Timeline& timeline)
      : program_{program}, order_{order}, timeline_{timeline}, intervals_(order.nodes.size()) {
    check_.is_complete = order.is_complete;
    find_nodes();
    find_intervals();
  }

  OrderCheck run() && {
    for (std::uint32_t node = 0; node < order_.nodes.size(); ++node) {
      if (intervals_[node].is_empty()) continue;
      ++check_.spans;
      check_before(node);
    }
    check_neighbours();
    return std::move(check_);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // process, op, instance

  /// A graph's spans carry its launch, all others what the entry does.
  void find_nodes() {
    for (std::uint32_t n = 0; n < order_.nodes.size(); ++n) {
      if (!order_.is_device(n)) continue;
      const OrderNode& node = order_.nodes[n];
      if (std::holds_alternative<GraphLaunch>(node.call.op->kind)) {
        nodes_[{node.process, node.call.op->id.value, node.call.instance}] = n;
        continue;
      }
      for (std::uint32_t i = 0; i < node.work_count; ++i) {
        const ExecutedOp& does = order_.work[node.first_work + i];
        nodes_[{node.process, does.op->id.value, does.instance}] = n;
      }
    }
  }

  std::uint32_t node_of(const Span& span) const {
    const Lane& lane = timeline_.lanes[span.lane];
    if (span.part == 0 || lane.kind != LaneKind::Stream) return kNone;
    const auto found = nodes_.find({lane.process, span.op, span.instance});
    return found == nodes_.end() ? kNone : found->second;
  }

  void find_intervals() {
    for (const Span& span : timeline_.spans) {
      const std::uint32_t node = node_of(span);
      if (node == kNone) continue;
      SpanOfNode& interval = intervals_[node];
      interval.begin_ns = std::min(interval.begin_ns, span.begin_ns);
      interval.end_ns = std::max(interval.end_ns, span.end_ns);
    }
    // Records and waits have no span: what came before them stands for them.
    for (const OrderLane& lane : order_.lanes) {
      auto& last = last_with_span_.emplace_back(1, kNone);
      for (const std::uint32_t node : lane.nodes) {
        last.push_back(intervals_[node].is_empty() ? last.back() : node);
      }
    }
  }

  void check_before(std::uint32_t node) {
    const OrderClock& before = order_.before[node];
    for (std::uint32_t lane = 0; lane < before.size(); ++lane) {
      if (!order_.lanes[lane].stream) continue;
      const std::uint32_t earlier = last_with_span_[lane][before[lane]];
      if (earlier != kNone) check_pair(earlier, node);
    }
  }

  void check_pair(std::uint32_t earlier, std::uint32_t later) {
    const std::int64_t distance_ns = intervals_[later].begin_ns - intervals_[earlier].end_ns;
    const bool one_clock = device_of(earlier) == device_of(later);
    if (!one_clock && std::abs(distance_ns) <= timeline_.origin.clock_error_bound_ns) {
      ++check_.undecided;
    } else if (distance_ns >= 0) {
      ++check_.held;
    } else {
      violate(earlier, later, -distance_ns, false);
    }
  }

  std::pair<std::uint32_t, std::uint32_t> device_of(std::uint32_t node) const {
    const OrderLane& lane = order_.lanes[order_.nodes[node].lane];
    return {lane.process, program_.streams[*lane.stream].device};
  }

  void violate(std::uint32_t earlier, std::uint32_t later, std::int64_t by_ns, bool is_overlap) {
    const auto executed = [this](std::uint32_t node) {
      const OrderNode& entry = order_.nodes[node];
      const bool is_graph = std::holds_alternative<GraphLaunch>(entry.call.op->kind);
      return is_graph || entry.work_count == 0 ? entry.call : order_.work[entry.first_work];
    };
    const ExecutedOp first = executed(earlier);
    const ExecutedOp second = executed(later);
    check_.violations.push_back({first.op, second.op, first.instance, second.instance,
                                 order_.nodes[later].process, by_ns, is_overlap});
  }

  /// On every lane of the timeline, whoever issued what.
  void check_neighbours() {
    std::map<std::uint32_t, std::map<std::uint32_t, SpanOfNode>> lanes;
    for (const Span& span : timeline_.spans) {
      const std::uint32_t node = node_of(span);
      if (node == kNone || shares_its_lane(node)) continue;
      SpanOfNode& interval = lanes[span.lane][node];
      interval.begin_ns = std::min(interval.begin_ns, span.begin_ns);
      interval.end_ns = std::max(interval.end_ns, span.end_ns);
    }
    for (const auto& [lane, nodes] : lanes) {
      std::vector<std::pair<SpanOfNode, std::uint32_t>> sorted;
      for (const auto& [node, interval] : nodes) sorted.emplace_back(interval, node);
      std::ranges::sort(sorted, [](const auto& a, const auto& b) {
        return std::tie(a.first.begin_ns, a.first.end_ns) <
               std::tie(b.first.begin_ns, b.first.end_ns);
      });
      for (std::size_t i = 1; i < sorted.size(); ++i) {
        const auto& [before, earlier] = sorted[i - 1];
        const auto& [after, later] = sorted[i];
        ++check_.neighbours;
        const std::int64_t distance_ns = after.begin_ns - before.end_ns;
        if (distance_ns < 0) violate(earlier, later, -distance_ns, true);
      }
    }
  }

  /// The per-thread default streams of several threads are one lane.
  bool shares_its_lane(std::uint32_t node) const {
    const OrderLane& lane = order_.lanes[order_.nodes[node].lane];
    return program_.streams[*lane.stream].kind == StreamKind::PerThreadDefault &&
           program_.threads.size() > 1;
  }

  const Program& program_;
  const HappensBefore& order_;
  const Timeline& timeline_;
  std::map<Key, std::uint32_t> nodes_;
  std::vector<SpanOfNode> intervals_;                       ///< by node
  std::vector<std::vector<std::uint32_t>> last_with_span_;  ///< by lane and position
  OrderCheck check_;
};

}  // namespace

OrderCheck check_order(const Program& program, const HappensBefore& order,
                       const Timeline& timeline) {
  return OrderChecker{program, order, timeline}.run();
}

std::string describe(const OrderViolation& v) {
  const auto name = [](const Op& op, std::uint64_t instance) {
    return fmt::format("line {} ({}{})", op.line, kind_name(op.kind),
                       instance > 0 ? fmt::format(", instance {}", instance) : "");
  };
  return fmt::format("process {}: {} begins {} before {} has ended{}", v.process,
                     name(*v.later, v.later_instance), format_time(static_cast<double>(v.by_ns)),
                     name(*v.earlier, v.earlier_instance),
                     v.is_overlap ? ": they overlap on one stream" : "");
}

}  // namespace foretrace
