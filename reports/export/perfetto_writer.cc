#include "reports/export/perfetto_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "reports/spans/launches.h"
#include "reports/spans/region_spans.h"
#include "reports/spans/span_class.h"
#include "reports/uses/critical_path.h"
#include "reports/uses/uses.h"

namespace foretrace {
namespace {

// Field numbers of Perfetto's protos/perfetto/trace/*.proto; tests decode with the same numbers.
namespace trace {
constexpr protozero::pbf_tag_type kPacket = 1;
}
namespace packet {
constexpr protozero::pbf_tag_type kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                                  kTrackDescriptor = 60;
}
namespace track {
constexpr protozero::pbf_tag_type kUuid = 1, kName = 2, kParent = 5, kChildOrdering = 11,
                                  kCounter = 8, kRank = 12;
constexpr std::int32_t kExplicit = 3;
}  // namespace track
namespace counter {
constexpr protozero::pbf_tag_type kUnit = 3;
constexpr std::int32_t kBytes = 3;
}  // namespace counter
namespace event {
constexpr protozero::pbf_tag_type kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22,
                                  kName = 23, kValue = 30, kFlow = 47, kTerminatingFlow = 48;
constexpr std::int32_t kBegin = 1, kEnd = 2, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr protozero::pbf_tag_type kUint = 3, kString = 6, kName = 10;
}

constexpr std::uint32_t kOurSequence = 1;
constexpr std::int32_t kBehindProcesses = 1 << 30;  // the last of its timeline's tracks

/// An end of an arrow at a span.
struct ArrowEnd {
  std::uint32_t span;
  std::uint64_t arrow;
};

/// Outgoing and incoming arrows, both sorted by span.
struct Arrows {
  std::vector<ArrowEnd> from, to;
};

Arrows arrows_of(const Timeline& timeline, std::uint64_t& next_arrow) {
  std::vector<Flow> flows = launch_flows(timeline);
  flows.insert(flows.end(), timeline.flows.begin(), timeline.flows.end());
  Arrows arrows;
  for (const Flow& flow : flows) {
    arrows.from.push_back({flow.from, next_arrow});
    arrows.to.push_back({flow.to, next_arrow++});
  }
  std::ranges::stable_sort(arrows.from, {}, &ArrowEnd::span);
  std::ranges::stable_sort(arrows.to, {}, &ArrowEnd::span);
  return arrows;
}

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_{out} {}

  /// `counts_bytes`: a curve instead of slices.
  std::uint64_t add_track(const std::string& name, std::uint64_t parent, std::int32_t rank,
                          bool counts_bytes = false) {
    const std::uint64_t uuid = next_uuid_++;
    write_packet([&](protozero::pbf_writer& packet) {
      protozero::pbf_writer descriptor{packet, packet::kTrackDescriptor};
      descriptor.add_uint64(track::kUuid, uuid);
      descriptor.add_string(track::kName, name);
      if (parent != 0) descriptor.add_uint64(track::kParent, parent);
      if (counts_bytes) {
        protozero::pbf_writer unit{descriptor, track::kCounter};
        unit.add_enum(counter::kUnit, counter::kBytes);
      }
      descriptor.add_enum(track::kChildOrdering, track::kExplicit);
      descriptor.add_int32(track::kRank, rank);
    });
    return uuid;
  }

  template <class Fill>
  void add_event(std::int64_t at_ns, std::int32_t type, std::uint64_t uuid, const Fill& fill) {
    write_packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(packet::kTimestamp, static_cast<std::uint64_t>(at_ns));
      packet.add_uint32(packet::kSequence, kOurSequence);
      protozero::pbf_writer one{packet, packet::kTrackEvent};
      one.add_enum(event::kType, type);
      one.add_uint64(event::kTrack, uuid);
      fill(one);
    });
  }

 private:
  template <class Fill>
  void write_packet(const Fill& fill) {
    buffer_.clear();
    {
      protozero::pbf_writer whole{buffer_};
      protozero::pbf_writer packet{whole, trace::kPacket};
      fill(packet);
    }
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  }

  std::ostream& out_;
  std::string buffer_;
  std::uint64_t next_uuid_ = 1;  // 0 means "no track" to Perfetto
};

void annotate(protozero::pbf_writer& one, const char* name, std::uint64_t value) {
  protozero::pbf_writer note{one, event::kAnnotation};
  note.add_string(annotation::kName, name);
  note.add_uint64(annotation::kUint, value);
}
void annotate(protozero::pbf_writer& one, const char* name, const std::string& value) {
  if (value.empty()) return;
  protozero::pbf_writer note{one, event::kAnnotation};
  note.add_string(annotation::kName, name);
  note.add_string(annotation::kString, value);
}

/// One timeline below its root track.
class TimelineWriter {
 public:
  TimelineWriter(Writer& writer, const Timeline& timeline, std::uint64_t& next_arrow)
      : writer_{writer},
        timeline_{timeline},
        arrows_{arrows_of(timeline, next_arrow)},
        regions_{region_spans(timeline)} {
    zero_ns_ = std::numeric_limits<std::int64_t>::max();
    for (const Span& span : timeline.spans) zero_ns_ = std::min(zero_ns_, span.begin_ns);
  }

  void write(std::int32_t rank) {
    const Origin& origin = timeline_.origin;
    root_ = writer_.add_track(
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
      writer_.add_event(std::max<std::int64_t>(0, at_ns - zero_ns_), event::kCounter, uuid,
                        [&](auto& one) { one.add_int64(event::kValue, bytes); });
    };
    for (const MemorySample& sample : timeline_.memory) {
      auto& [allocated, reserved] = made[{sample.process, sample.device}];
      if (allocated == 0) {
        Lane lane;
        lane.process = sample.process;
        lane.device = sample.device;
        const std::uint64_t device = parent_of(lane);
        allocated = writer_.add_track("memory: allocated", device, next_rank_++, true);
        reserved = writer_.add_track("memory: reserved", device, next_rank_++, true);
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
      process = writer_.add_track(fmt::format("process {}", lane.process), root_,
                                  static_cast<std::int32_t>(lane.process));
    }
    if (lane.device == kNoDevice) return process;
    auto& device = devices_[{lane.process, lane.device}];
    if (device == 0) {
      // Behind the process's host threads, which are fewer than 1000.
      device = writer_.add_track(fmt::format("device {}", lane.device), process,
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
        writer_.add_event(open.back().end_ns - zero_ns_, event::kEnd, uuid,
                          [](protozero::pbf_writer&) {});
        open.pop_back();
      }
    };
    for (const RegionSpan& region : regions_) {
      if (region.lane != lane) continue;
      const Lane& of = timeline_.lanes[lane];
      if (uuid == 0) uuid = writer_.add_track(of.name + ": regions", parent_of(of), next_rank_++);
      close_until(region.begin_ns);
      const OpRow& op = timeline_.ops[region.op];
      writer_.add_event(region.begin_ns - zero_ns_, event::kBegin, uuid, [&](auto& one) {
        annotate(one, "line", static_cast<std::uint64_t>(op.line));
        annotate(one, "instance", region.instance);
        one.add_string(event::kCategory, "region");
        one.add_string(event::kName, op.label);
      });
      open.push_back(region);
    }
    close_until(std::numeric_limits<std::int64_t>::max());
  }

  /// What each GPU does or waits for, as a track below its device.
  void write_uses() {
    for (const explain::GpuTime& gpu : explain::gpu_times(timeline_)) {
      const Lane lane{.process = gpu.process, .device = gpu.device, .name = {}};
      const auto uuid = writer_.add_track("what it waits for", parent_of(lane), next_rank_++);
      for (const explain::UseTime& time : gpu.times) {
        write_slice(uuid, time.begin_ns, time.end_ns, "explain",
                    std::string{explain::name_of(time.use)});
      }
    }
  }

  void write_critical_path() {
    const explain::CriticalPath path = explain::critical_path(timeline_);
    if (path.parts.empty()) return;
    const auto uuid = writer_.add_track("critical path", root_, kBehindProcesses);
    for (const explain::PathPart& part : path.parts) {
      if (part.begin_ns == part.end_ns) continue;
      const std::string name =
          part.span == nullptr
              ? std::string{"waiting"}
              : fmt::format("process {}: {}", timeline_.lanes[part.span->lane].process,
                            title_of(timeline_.ops[part.span->op]));
      write_slice(uuid, part.begin_ns, part.end_ns, "explain", name);
    }
  }

  void write_slice(std::uint64_t uuid, std::int64_t begin_ns, std::int64_t end_ns,
                   const char* category, const std::string& name) {
    writer_.add_event(begin_ns - zero_ns_, event::kBegin, uuid, [&](auto& one) {
      one.add_string(event::kCategory, category);
      one.add_string(event::kName, name);
    });
    writer_.add_event(end_ns - zero_ns_, event::kEnd, uuid, [](protozero::pbf_writer&) {});
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
      const auto uuid = writer_.add_track(of.name, parent, next_rank_++);
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
    const Span& span = timeline_.spans[open.back()];
    open.pop_back();
    writer_.add_event(span.end_ns - zero_ns_, event::kEnd, uuid, [](protozero::pbf_writer&) {});
  }

  void begin_slice(std::uint64_t uuid, std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    const OpRow& op = timeline_.ops[span.op];
    const SpanDetail& detail = timeline_.details[span.detail];
    writer_.add_event(span.begin_ns - zero_ns_, event::kBegin, uuid, [&](auto& one) {
      annotate(one, "op", span.op);
      annotate(one, "line", static_cast<std::uint64_t>(op.line));
      annotate(one, "instance", span.instance);
      if (op.size_bytes != 0) annotate(one, "size_bytes", op.size_bytes);
      annotate(one, "variant", op.variant);
      annotate(one, "kernel", detail.kernel);
      annotate(one, "algorithm", detail.algorithm);
      annotate(one, "protocol", detail.protocol);
      if (detail.channels != 0) annotate(one, "channels", detail.channels);
      if (const auto elapsed = elapsed_ns(timeline_, span)) {
        annotate(one, "elapsed_ns",
                 static_cast<std::uint64_t>(std::max<std::int64_t>(*elapsed, 0)));
      }
      one.add_string(event::kCategory,
                     std::string{name_of(class_of(op, timeline_.lanes[span.lane]))});
      one.add_string(event::kName, title_of(op));
      add_arrows(one, event::kFlow, arrows_.from, index);
      add_arrows(one, event::kTerminatingFlow, arrows_.to, index);
    });
  }

  static void add_arrows(protozero::pbf_writer& one, protozero::pbf_tag_type tag,
                         const std::vector<ArrowEnd>& ends, std::uint32_t span) {
    for (auto end = std::ranges::lower_bound(ends, span, {}, &ArrowEnd::span);
         end != ends.end() && end->span == span; ++end) {
      one.add_fixed64(tag, end->arrow);
    }
  }

  Writer& writer_;
  const Timeline& timeline_;
  Arrows arrows_;
  std::vector<RegionSpan> regions_;
  std::int64_t zero_ns_;
  std::uint64_t root_ = 0;
  std::int32_t next_rank_ = 0;
  std::map<std::uint32_t, std::uint64_t> processes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> devices_;
};

}  // namespace

void write_perfetto(std::span<const Timeline* const> timelines, std::ostream& out) {
  Writer writer{out};
  std::uint64_t next_arrow = 1;
  std::int32_t rank = 0;
  for (const Timeline* timeline : timelines) {
    TimelineWriter{writer, *timeline, next_arrow}.write(rank++);
  }
}

}  // namespace foretrace
