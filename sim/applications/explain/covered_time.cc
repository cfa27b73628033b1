#include "sim/applications/explain/covered_time.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <variant>
#include <vector>

#include "reports/spans/span_class.h"
#include "reports/uses/intervals.h"
#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::explain {
namespace {

struct Execution {
  std::int64_t begin = INT64_MAX, end = 0;
};
/// Of one region in one process, by its instance.
using Executions = std::map<std::uint64_t, Execution>;

/// What device spans do, by process and device.
class DeviceWork {
 public:
  void add(const Timeline& timeline, const Span& span) {
    const Lane& lane = timeline.lanes[span.lane];
    const SpanClass what = class_of(timeline.ops[span.op], lane);
    if (what == SpanClass::Order) return;
    Device& device = devices_[{lane.process, lane.device}];
    if (what == SpanClass::Kernel) device.lanes.insert(span.lane);
    (what == SpanClass::Kernel ? device.kernels : device.others)
        .emplace_back(span.begin_ns, span.end_ns);
    all_.emplace_back(span.begin_ns, span.end_ns);
  }
  std::int64_t any() const { return length(joined(all_)); }
  std::int64_t alone() const {
    std::int64_t most = 0;
    for (const auto& [place, device] : devices_) {
      if (device.lanes.size() > 1) continue;
      most = std::max(most, length(without(joined(device.kernels), joined(device.others))));
    }
    return most;
  }

 private:
  struct Device {
    Times kernels, others;
    std::set<std::uint32_t> lanes;  ///< of kernels
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Device> devices_;
  Times all_;
};

class Reader {
 public:
  Reader(const Program& program, const Timeline& timeline)
      : timeline_{timeline}, regions_of_(timeline.ops.size()) {
    for_each_op(program, [&](const HostThread&, const Op& op, Around around) {
      for (const Op* block : around) {
        const auto* region = std::get_if<Region>(&block->kind);
        if (region != nullptr && !is_of_issuing(*region) && op.id.value < regions_of_.size()) {
          regions_of_[op.id.value].push_back(block->id.value);
        }
      }
    });
  }

  CoveredTimes read() {
    read_calls();
    for (const RegionSamples& region : timeline_.regions) {
      const auto found = executions_.find({region.op, region.process});
      if (found == executions_.end()) continue;
      const auto one = found->second.find(region.instance);
      if (one == found->second.end()) continue;
      one->second.end = one->second.begin + region.samples_ns.front();
    }
    for (auto& [key, executions] : executions_) {
      for (auto& [instance, one] : executions) by_begin_[key].push_back(&one);
      std::ranges::sort(by_begin_[key], {}, &Execution::begin);
    }
    read_device();
    CoveredTimes covered;
    for (const auto& [key, executions] : executions_) {
      Times times;
      for (const auto& [instance, one] : executions) times.emplace_back(one.begin, one.end);
      const DeviceWork& device = device_work_[key];
      covered[key] = {length(joined(std::move(times))), host_ns_[key], device.any(),
                      device.alone()};
    }
    return covered;
  }

 private:
  const Lane& lane_of(const Span& span) const { return timeline_.lanes[span.lane]; }

  /// The region's instance in which an operation's was: their inner loops are left out.
  std::uint64_t outer_instance(const Span& span, std::uint32_t region) const {
    const auto& loops = timeline_.ops[span.op].loops;
    std::uint64_t inner = 1;
    for (std::size_t i = timeline_.ops[region].loops.size(); i < loops.size(); ++i) {
      inner *= std::max<std::uint64_t>(1, loops[i]);
    }
    return span.instance / inner;
  }

  void read_calls() {
    for (const Span& span : timeline_.spans) {
      if (lane_of(span).device != kNoDevice || span.part != 0) continue;
      called_.insert(span.op);
      for (const std::uint32_t region : regions_of_[span.op]) {
        Execution& one =
            executions_[{region, lane_of(span).process}][outer_instance(span, region)];
        one.begin = std::min(one.begin, span.begin_ns);
        one.end = std::max(one.end, span.end_ns);
        if (class_of(timeline_.ops[span.op], lane_of(span)) != SpanClass::HostWork) continue;
        host_ns_[{region, lane_of(span).process}] += span.end_ns - span.begin_ns;
      }
    }
  }

  void read_device() {
    for (const Span& span : timeline_.spans) {
      if (lane_of(span).device == kNoDevice) continue;
      if (!called_.contains(span.op)) {
        extend_last_begun(span);
        continue;
      }
      for (const std::uint32_t region : regions_of_[span.op]) {
        const auto found = executions_.find({region, lane_of(span).process});
        if (found == executions_.end()) continue;
        const auto one = found->second.find(outer_instance(span, region));
        if (one == found->second.end()) continue;
        one->second.end = std::max(one->second.end, span.end_ns);
        device_work_[found->first].add(timeline_, span);
      }
    }
  }

  /// Of a graph's nodes nobody says which launch they are of.
  void extend_last_begun(const Span& span) {
    const std::uint32_t process = lane_of(span).process;
    for (auto& [key, begun] : by_begin_) {
      if (key.second != process) continue;
      const auto behind = std::ranges::upper_bound(begun, span.begin_ns, {}, &Execution::begin);
      if (behind == begun.begin()) continue;
      Execution& last = **(behind - 1);
      last.end = std::max(last.end, span.end_ns);
      device_work_[key].add(timeline_, span);
    }
  }

  const Timeline& timeline_;
  std::vector<std::vector<std::uint32_t>> regions_of_;  ///< by op: those around it
  std::set<std::uint32_t> called_;                      ///< ops with a call of their own
  std::map<std::pair<std::uint32_t, std::uint32_t>, Executions> executions_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Execution*>> by_begin_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> host_ns_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, DeviceWork> device_work_;
};

}  // namespace

CoveredTimes covered_times(const Program& program, const Timeline& timeline) {
  return Reader{program, timeline}.read();
}

Covered covered_by_all(const Timeline& timeline) {
  Covered all;
  std::map<std::uint32_t, std::int64_t> host;  // by lane
  DeviceWork device;
  for (const Span& span : timeline.spans) {
    all.ns = std::max(all.ns, span.end_ns);
    const Lane& lane = timeline.lanes[span.lane];
    if (lane.device != kNoDevice) {
      device.add(timeline, span);
    } else if (class_of(timeline.ops[span.op], lane) == SpanClass::HostWork) {
      host[span.lane] += span.end_ns - span.begin_ns;
    }
  }
  for (const auto& [of, ns] : host) all.host_ns = std::max(all.host_ns, ns);
  all.device_ns = device.any();
  all.alone_ns = device.alone();
  return all;
}

}  // namespace foretrace::explain
