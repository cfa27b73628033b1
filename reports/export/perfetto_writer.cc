#include "reports/export/perfetto_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "reports/export/perfetto_packets.h"
#include "reports/spans/launches.h"
#include "reports/spans/region_spans.h"
#include "reports/spans/span_class.h"
#include "reports/uses/critical_path.h"
#include "reports/uses/uses.h"

namespace foretrace {
namespace {

constexpr std::int32_t kBehindProcesses = 1 << 30;  // the last of its timeline's tracks

/// The arrows that begin, or end, at each span, in their order.
class ArrowEnds {
 public:
  /// `end`: Flow::from or Flow::to.
  ArrowEnds(const std::vector<Flow>& flows, std::uint32_t Flow::*end, std::size_t spans,
            std::uint64_t first_arrow)
      : begin_(spans + 2), arrows_(flows.size()) {
    for (const Flow& flow : flows) ++begin_[flow.*end + std::size_t{2}];
    for (std::size_t i = 2; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    for (const Flow& flow : flows) arrows_[begin_[flow.*end + std::size_t{1}]++] = first_arrow++;
  }
  std::span<const std::uint64_t> at(std::uint32_t span) const {
    return std::span{arrows_}.subspan(begin_[span], begin_[span + std::size_t{1}] - begin_[span]);
  }

 private:
  std::vector<std::size_t> begin_;  ///< by span, and one more, in arrows_
  std::vector<std::uint64_t> arrows_;
};

std::vector<Flow> all_flows(const Timeline& timeline) {
  std::vector<Flow> flows = launch_flows(timeline);
  flows.insert(flows.end(), timeline.flows.begin(), timeline.flows.end());
  return flows;
}

/// One timeline below its root track.
class TimelineWriter {
 public:
  TimelineWriter(perfetto::Packets& packets, const Timeline& timeline,
                 const std::vector<Flow>& flows, std::uint64_t first_arrow)
      : packets_{packets},
        timeline_{timeline},
        begin_{flows, &Flow::from, timeline.spans.size(), first_arrow},
        end_{flows, &Flow::to, timeline.spans.size(), first_arrow},
        regions_{region_spans(timeline)} {
    zero_ns_ = std::numeric_limits<std::int64_t>::max();
    for (const Span& span : timeline.spans) zero_ns_ = std::min(zero_ns_, span.begin_ns);
  }

  void write(std::int32_t rank) {
    const Origin& origin = timeline_.origin;
    root_ = packets_.add_track(
        fmt::format("{}: {}", origin.measured ? "measured" : "predicted", origin.machine), 0, rank);
    std::vector<std::vector<std::uint32_t>> by_lane(timeline_.lanes.size());
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) {
      by_lane[timeline_.spans[i].lane].push_back(i);
    }
    for (const std::uint32_t lane : lanes_in_order()) {
      write_regions(lane);
      write_lane(lane, std::move(by_lane[lane]));
    }
    write_uses();
    write_critical_path();
    write_memory();
  }

 private:
  /// Behind a device's lanes: two curves, of which the reserve is the upper one.
  void write_memory() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> made;
    const auto add = [&](std::uint64_t uuid, std::int64_t at_ns, std::int64_t bytes) {
      packets_.set_curve(uuid, std::max<std::int64_t>(0, at_ns - zero_ns_), bytes);
    };
    for (const MemorySample& sample : timeline_.memory) {
      auto& [allocated, reserved] = made[{sample.process, sample.device}];
      if (allocated == 0) {
        Lane lane;
        lane.process = sample.process;
        lane.device = sample.device;
        const std::uint64_t device = parent_of(lane);
        allocated = packets_.add_track("memory: allocated", device, next_rank_++, true);
        reserved = packets_.add_track("memory: reserved", device, next_rank_++, true);
      }
      add(allocated, sample.at_ns, sample.allocated);
      add(reserved, sample.at_ns, sample.reserved);
    }
  }

  /// By process; host threads first, then by device; streams, copy engines, SM pools, links.
  std::vector<std::uint32_t> lanes_in_order() const {
    std::vector<std::uint32_t> order(timeline_.lanes.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) {
      const Lane& lane = timeline_.lanes[i];
      // kNoDevice + 1 wraps to 0: what belongs to no device stands before the devices
      return std::tuple{lane.process, lane.device + 1, lane.kind};
    });
    return order;
  }

  std::uint64_t parent_of(const Lane& lane) {
    auto& process = processes_[lane.process];
    if (process == 0) {
      process = packets_.add_track(fmt::format("process {}", lane.process), root_,
                                   static_cast<std::int32_t>(lane.process));
    }
    if (lane.device == kNoDevice) return process;
    auto& device = devices_[{lane.process, lane.device}];
    if (device == 0) {
      // Behind the process's host threads, which are fewer than 1000.
      device = packets_.add_track(fmt::format("device {}", lane.device), process,
                                  1000 + static_cast<std::int32_t>(lane.device));
    }
    return device;
  }

  /// The regions of a host thread as a track above it; they nest as their blocks do.
  void write_regions(std::uint32_t lane) {
    if (timeline_.lanes[lane].kind != LaneKind::HostThread) return;
    std::vector<RegionSpan> open;
    std::uint64_t uuid = 0;
    const auto close_until = [&](std::int64_t at_ns) {
      while (!open.empty() && open.back().end_ns <= at_ns) {
        packets_.end_slice(uuid, open.back().end_ns - zero_ns_);
        open.pop_back();
      }
    };
    for (const RegionSpan& region : regions_) {
      if (region.lane != lane) continue;
      const Lane& of = timeline_.lanes[lane];
      if (uuid == 0) uuid = packets_.add_track(of.name + ": regions", parent_of(of), next_rank_++);
      close_until(region.begin_ns);
      const OpRow& op = timeline_.ops[region.op];
      fields_.clear();
      fields_.annotate("line", static_cast<std::uint64_t>(op.line));
      fields_.annotate("instance", region.instance);
      fields_.set_category("region");
      fields_.set_name(op.label);
      packets_.begin_slice(uuid, region.begin_ns - zero_ns_, fields_);
      open.push_back(region);
    }
    close_until(std::numeric_limits<std::int64_t>::max());
  }

  /// What each GPU does or waits for, as a track below its device.
  void write_uses() {
    for (const explain::GpuTime& gpu : explain::gpu_times(timeline_)) {
      const Lane lane{.process = gpu.process, .device = gpu.device, .name = {}};
      const auto uuid = packets_.add_track("what it waits for", parent_of(lane), next_rank_++);
      for (const explain::UseTime& time : gpu.times) {
        write_slice(uuid, time.begin_ns, time.end_ns, explain::name_of(time.use));
      }
    }
  }

  void write_critical_path() {
    const explain::CriticalPath path = explain::critical_path(timeline_);
    if (path.parts.empty()) return;
    const auto uuid = packets_.add_track("critical path", root_, kBehindProcesses);
    for (const explain::PathPart& part : path.parts) {
      if (part.begin_ns == part.end_ns) continue;
      const std::string name =
          part.span == nullptr
              ? std::string{"waiting"}
              : fmt::format("process {}: {}", timeline_.lanes[part.span->lane].process,
                            title_of(timeline_.ops[part.span->op]));
      write_slice(uuid, part.begin_ns, part.end_ns, name);
    }
  }

  void write_slice(std::uint64_t uuid, std::int64_t begin_ns, std::int64_t end_ns,
                   std::string_view name) {
    fields_.clear();
    fields_.set_category("explain");
    fields_.set_name(name);
    packets_.begin_slice(uuid, begin_ns - zero_ns_, fields_);
    packets_.end_slice(uuid, end_ns - zero_ns_);
  }

  /// Slices of a track must nest; those that do not (two clocks, a nanosecond of overlap) go to a
  /// further track of the same name, as Perfetto itself would have it.
  void write_lane(std::uint32_t lane, std::vector<std::uint32_t> spans) {
    const auto& all = timeline_.spans;
    std::ranges::stable_sort(spans, [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple{all[a].begin_ns, -all[a].end_ns} <
             std::tuple{all[b].begin_ns, -all[b].end_ns};
    });
    const Lane& of = timeline_.lanes[lane];
    const std::uint64_t parent = parent_of(of);
    do {
      const auto uuid = packets_.add_track(of.name, parent, next_rank_++);
      std::vector<std::uint32_t> open;
      std::vector<std::uint32_t> left;
      for (const std::uint32_t i : spans) {
        while (!open.empty() && all[open.back()].end_ns <= all[i].begin_ns) end_slice(uuid, open);
        if (!open.empty() && all[i].end_ns > all[open.back()].end_ns) {
          left.push_back(i);
          continue;
        }
        begin_slice(uuid, i);
        open.push_back(i);
      }
      while (!open.empty()) end_slice(uuid, open);
      spans = std::move(left);
    } while (!spans.empty());
  }

  void end_slice(std::uint64_t uuid, std::vector<std::uint32_t>& open) {
    packets_.end_slice(uuid, timeline_.spans[open.back()].end_ns - zero_ns_);
    open.pop_back();
  }

  void begin_slice(std::uint64_t uuid, std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    fields_.clear();
    fields_.append(common_fields(span));
    fields_.annotate("instance", span.instance);
    if (const auto elapsed = elapsed_ns(timeline_, span)) {
      fields_.annotate("elapsed_ns",
                       static_cast<std::uint64_t>(std::max<std::int64_t>(*elapsed, 0)));
    }
    for (const std::uint64_t arrow : begin_.at(index)) fields_.begin_arrow(arrow);
    for (const std::uint64_t arrow : end_.at(index)) fields_.end_arrow(arrow);
    packets_.begin_slice(uuid, span.begin_ns - zero_ns_, fields_);
  }

  /// What the spans of an operation have in common.
  const perfetto::Fields& common_fields(const Span& span) {
    const Lane& lane = timeline_.lanes[span.lane];
    const auto [place, is_new] = common_.try_emplace({span.op, span.detail, lane.kind});
    perfetto::Fields& fields = place->second;
    if (!is_new) return fields;
    const OpRow& op = timeline_.ops[span.op];
    const SpanDetail& detail = timeline_.details[span.detail];
    fields.annotate("op", span.op);
    fields.annotate("line", static_cast<std::uint64_t>(op.line));
    if (op.size_bytes != 0) fields.annotate("size_bytes", op.size_bytes);
    fields.annotate("variant", op.variant);
    fields.annotate("kernel", detail.kernel);
    fields.annotate("algorithm", detail.algorithm);
    fields.annotate("protocol", detail.protocol);
    if (detail.channels != 0) fields.annotate("channels", detail.channels);
    fields.set_category(name_of(class_of(op, lane)));
    fields.set_name(title_of(op));
    return fields;
  }

  perfetto::Packets& packets_;
  const Timeline& timeline_;
  ArrowEnds begin_, end_;
  perfetto::Fields fields_;  ///< of the slice that is written
  std::map<std::tuple<std::uint32_t, std::uint32_t, LaneKind>, perfetto::Fields> common_;
  std::vector<RegionSpan> regions_;
  std::int64_t zero_ns_;
  std::uint64_t root_ = 0;
  std::int32_t next_rank_ = 0;
  std::map<std::uint32_t, std::uint64_t> processes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> devices_;
};

}  // namespace

void write_perfetto(std::span<const Timeline* const> timelines, std::ostream& out) {
  perfetto::Packets packets{out};
  std::uint64_t next_arrow = 1;
  std::int32_t rank = 0;
  for (const Timeline* timeline : timelines) {
    const std::vector<Flow> flows = all_flows(*timeline);
    TimelineWriter{packets, *timeline, flows, next_arrow}.write(rank++);
    next_arrow += flows.size();
  }
  packets.flush();
}

}  // namespace foretrace
