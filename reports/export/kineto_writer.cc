#include "reports/export/kineto_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>

#include "reports/export/exported_name.h"
#include "reports/export/kineto_names.h"
#include "reports/spans/launches.h"
#include "reports/spans/region_spans.h"
#include "reports/spans/span_class.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

/// Host rows: above any device ordinal, so that process ids and devices do not meet.
constexpr std::uint32_t kHostPid = 1000;

std::string dump_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Microseconds since the run's start; a double holds them to the nanosecond for 52 days.
double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

class RankWriter {
 public:
  RankWriter(const Timeline& timeline, std::uint32_t process, std::ostream& out)
      : timeline_{timeline}, process_{process}, out_{out} {
    zero_ns_ = std::numeric_limits<std::int64_t>::max();
    for (const Span& span : timeline.spans) zero_ns_ = std::min(zero_ns_, span.begin_ns);
    for (const Lane& lane : timeline.lanes) {
      if (lane.device != kNoDevice) {
        devices_per_process_ = std::max(devices_per_process_, lane.device + 1);
      }
    }
    for (const Flow& launch : launch_flows(timeline)) {
      call_of_[launch.to] = launch.from;
      has_work_.insert(launch.from);
    }
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      const Lane& lane = timeline.lanes[span.lane];
      const OpRow& op = timeline.ops[span.op];
      if (op.kind == "event_record" && lane.kind == LaneKind::HostThread &&
          lane.process == process) {
        records_[parts_of(op).event][span.begin_ns] = i;
      }
    }
  }

  void write() {
    // HTA finds the rank by the text `"rank": 0`, blank included, so the head is indented.
    std::string head = head_json().dump(1);
    head.resize(head.rfind('\n'));
    out_ << head << ",\n \"traceEvents\": [";
    write_names();
    for (std::uint32_t i = 0; i < timeline_.spans.size(); ++i) write_span(i);
    write_regions();
    out_ << "\n ]\n}\n";
  }

 private:
  Json head_json() const {
    const auto world = processes_of(timeline_).size();
    Json devices = Json::array();
    for (std::uint32_t d = 0; d < devices_per_process_; ++d) {
      devices.push_back({{"id", pid_of_device(d)}, {"name", timeline_.origin.machine}});
    }
    const auto nccl = timeline_.origin.versions.find("nccl");
    Json distributed{{"backend", "nccl"}, {"rank", process_}, {"world_size", world}};
    if (nccl != timeline_.origin.versions.end()) distributed["nccl_version"] = nccl->second;
    return {{"schemaVersion", 1},
            {"deviceProperties", devices},
            {"distributedInfo", distributed},
            {"displayTimeUnit", "ns"},
            {"baseTimeNanoseconds", 0},
            {"traceName", fmt::format("rank{}.pt.trace.json", process_)}};
  }

  std::uint32_t pid_of_device(std::uint32_t device) const {
    return process_ * devices_per_process_ + device;
  }
  std::uint32_t pid_of(const Lane& lane) const {
    return lane.device == kNoDevice ? kHostPid + process_ : pid_of_device(lane.device);
  }
  bool is_shown(const Lane& lane) const { return lane.process == process_; }

  void event(const Json& json) {
    out_ << (first_ ? "\n  " : ",\n  ") << dump_line(json);
    first_ = false;
  }

  void write_names() {
    std::set<std::uint32_t> named;
    for (std::uint32_t tid = 0; tid < timeline_.lanes.size(); ++tid) {
      const Lane& lane = timeline_.lanes[tid];
      if (!is_shown(lane)) continue;
      const auto pid = pid_of(lane);
      if (named.insert(pid).second) {
        const bool is_host = lane.device == kNoDevice;
        const auto name =
            is_host ? fmt::format("process {}", process_) : fmt::format("GPU {}", pid);
        metadata("process_name", pid, 0, "name", name);
        metadata("process_labels", pid, 0, "labels", is_host ? "CPU" : name);
      }
      metadata(
          "thread_name", pid, tid, "name",
          lane.kind == LaneKind::Stream ? fmt::format("stream {} {}", tid, lane.name) : lane.name);
    }
  }

  void metadata(const char* name, std::uint32_t pid, std::uint32_t tid, const char* key,
                const std::string& value) {
    event({{"ph", "M"},
           {"name", name},
           {"ts", 0},
           {"pid", pid},
           {"tid", tid},
           {"args", {{key, exported_name(value)}}}});
  }

  void write_span(std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    const Lane& lane = timeline_.lanes[span.lane];
    if (!is_shown(lane)) return;
    lane.kind == LaneKind::Stream ? write_device(index) : write_host(index);
  }

  Json slice(const Span& span, const std::string& category, const std::string& name) const {
    return {{"ph", "X"},
            {"cat", category},
            {"name", shortened(name, category == "kernel" ? kLongestKernel : kLongestName)},
            {"pid", pid_of(timeline_.lanes[span.lane])},
            {"tid", span.lane},
            {"ts", us(span.begin_ns - zero_ns_)},
            {"dur", us(span.end_ns - span.begin_ns)}};
  }

  void write_host(std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    const OpRow& op = timeline_.ops[span.op];
    const SpanClass what = class_of(op, timeline_.lanes[span.lane]);
    const bool is_ours = what == SpanClass::HostWork || what >= SpanClass::Waiting ||
                         op.kind.starts_with("host_barrier") || op.kind == "host_wait" ||
                         op.kind == "host_signal";
    const char* category = op.kind == "region" ? "user_annotation"
                           : is_ours           ? "cpu_op"
                                               : "cuda_runtime";
    Json json = slice(span, category, op.kind == "region" ? op.label : cuda_call_name(op));
    json["args"] = {{"correlation", index + 1}, {"op", span.op}, {"line", op.line}};
    if (const auto elapsed = elapsed_ns(timeline_, span)) json["args"]["elapsed_ns"] = *elapsed;
    event(json);
    write_synchronization(index);
  }

  /// What the host waits for, as Kineto's CUDA synchronization events have it: on the device's
  /// process and the stream's row.
  void write_synchronization(std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    const OpRow& op = timeline_.ops[span.op];
    if (op.kind == "stream_wait_event" && !has_work_.contains(index)) write_stream_wait(index);
    const bool of_stream = op.kind == "stream_synchronize";
    if (!of_stream && op.kind != "device_synchronize") return;
    const auto lane = of_stream ? stream_called(op.variant) : any_stream();
    if (!lane) return;
    Json json = slice(span, "cuda_sync", of_stream ? "Stream Sync" : "Context Sync");
    json["pid"] = pid_of(timeline_.lanes[*lane]);
    json["tid"] = *lane;
    json["args"] = {{"stream", of_stream ? static_cast<std::int64_t>(*lane) : -1},
                    {"correlation", index + 1},
                    {"device", pid_of(timeline_.lanes[*lane])},
                    {"context", 1}};
    event(json);
  }

  std::optional<std::uint32_t> any_stream() const {
    for (std::uint32_t tid = 0; tid < timeline_.lanes.size(); ++tid) {
      const Lane& lane = timeline_.lanes[tid];
      if (lane.process == process_ && lane.kind == LaneKind::Stream) return tid;
    }
    return std::nullopt;
  }

  void write_device(std::uint32_t index) {
    const Span& span = timeline_.spans[index];
    const OpRow& op = timeline_.ops[span.op];
    const KinetoActivity activity = stream_activity(op, timeline_.details[span.detail]);
    if (activity.category.empty()) return;
    const auto call = call_of_.find(index);
    Json json = slice(span, activity.category, activity.name);
    json["args"] = {
        {"device", pid_of(timeline_.lanes[span.lane])}, {"context", 1}, {"stream", span.lane}};
    if (call != call_of_.end()) json["args"]["correlation"] = call->second + 1;
    if (activity.category == "gpu_memcpy" || activity.category == "gpu_memset") {
      json["args"]["bytes"] = op.size_bytes;
    }
    json["args"]["op"] = span.op;
    json["args"]["line"] = op.line;
    if (op.kind == "stream_wait_event" && call != call_of_.end()) {
      wait_for_record(json["args"], call->second);
    }
    event(json);
    if (call != call_of_.end()) write_arrow(call->second, index);
  }

  /// Regions as annotations; the outermost ones of a process are its profiler's steps, which
  /// Holistic Trace Analysis cuts a trace into. A process without regions is one step.
  void write_regions() {
    std::uint32_t step = 0;
    std::optional<std::uint32_t> lane;  // the process's first thread that has regions
    for (const RegionSpan& region : region_spans(timeline_)) {
      if (timeline_.lanes[region.lane].process != process_) continue;
      if (!lane) lane = region.lane;
      if (region.depth == 0 && region.lane == *lane) write_step(step++, region);
      write_annotation(timeline_.ops[region.op].label, region);
    }
    if (step != 0) return;
    RegionSpan whole{.begin_ns = std::numeric_limits<std::int64_t>::max()};
    for (const Span& span : timeline_.spans) {
      const Lane& of = timeline_.lanes[span.lane];
      if (of.process != process_ || of.kind != LaneKind::HostThread) continue;
      if (span.begin_ns < whole.begin_ns) whole.lane = span.lane;
      whole.begin_ns = std::min(whole.begin_ns, span.begin_ns);
      whole.end_ns = std::max(whole.end_ns, span.end_ns);
    }
    if (whole.begin_ns < whole.end_ns) write_step(0, whole);
  }

  void write_step(std::uint32_t number, const RegionSpan& region) {
    write_annotation(fmt::format("ProfilerStep#{}", number), region);
  }

  void write_annotation(const std::string& name, const RegionSpan& region) {
    Json json = slice({.lane = region.lane, .begin_ns = region.begin_ns, .end_ns = region.end_ns},
                      "user_annotation", name);
    json["args"] = {{"line", timeline_.ops[region.op].line}};
    event(json);
  }

  /// Which cudaEventRecord the wait that `call` asks for is for: the last one of its event before
  /// it.
  void wait_for_record(Json& args, std::uint32_t call) const {
    const Span& waiting = timeline_.spans[call];
    const auto of_event = records_.find(parts_of(timeline_.ops[waiting.op]).event);
    if (of_event == records_.end()) return;
    const auto next = of_event->second.upper_bound(waiting.begin_ns);
    if (next == of_event->second.begin()) return;
    const std::uint32_t record = std::prev(next)->second;
    const OpRow& op = timeline_.ops[timeline_.spans[record].op];
    if (const auto stream = stream_called(parts_of(op).stream)) args["wait_on_stream"] = *stream;
    args["wait_on_cuda_event_record_corr_id"] = record + 1;
  }

  /// A stream's wait that the timeline has no span of on its stream.
  void write_stream_wait(std::uint32_t call) {
    const Span& span = timeline_.spans[call];
    const auto stream = stream_called(parts_of(timeline_.ops[span.op]).stream);
    if (!stream) return;
    const std::uint32_t pid = pid_of(timeline_.lanes[*stream]);
    Json json = slice({.lane = *stream, .begin_ns = span.end_ns, .end_ns = span.end_ns},
                      "cuda_sync", "Stream Wait Event");
    json["args"] = {
        {"stream", *stream}, {"correlation", call + 1}, {"device", pid}, {"context", 1}};
    wait_for_record(json["args"], call);
    event(json);
  }

  /// "ready on compute" (OpRow::variant).
  struct EventAndStream {
    std::string event, stream;
  };
  static EventAndStream parts_of(const OpRow& op) {
    const auto on = op.variant.find(" on ");
    if (on == std::string::npos) return {op.variant, {}};
    return {op.variant.substr(0, on), op.variant.substr(on + 4)};
  }
  /// This process's lane of that name.
  std::optional<std::uint32_t> stream_called(const std::string& name) const {
    for (std::uint32_t tid = 0; tid < timeline_.lanes.size(); ++tid) {
      const Lane& lane = timeline_.lanes[tid];
      if (lane.process == process_ && lane.kind == LaneKind::Stream && lane.name == name)
        return tid;
    }
    return std::nullopt;
  }

  void write_arrow(std::uint32_t from, std::uint32_t to) {
    const auto end = [&](const char* phase, std::uint32_t index) {
      const Span& span = timeline_.spans[index];
      return Json{{"ph", phase},
                  {"id", to + 1},
                  {"pid", pid_of(timeline_.lanes[span.lane])},
                  {"tid", span.lane},
                  {"ts", us(span.begin_ns - zero_ns_)},
                  {"cat", "ac2g"},
                  {"name", "ac2g"}};
    };
    event(end("s", from));
    Json finish = end("f", to);
    finish["bp"] = "e";
    event(finish);
  }

  const Timeline& timeline_;
  std::uint32_t process_;
  std::ostream& out_;
  std::int64_t zero_ns_;
  std::uint32_t devices_per_process_ = 1;
  std::map<std::uint32_t, std::uint32_t> call_of_;  // device span -> host span
  std::set<std::uint32_t> has_work_;                // host spans of which a device shows something
  /// By event: the host spans of its records, by their begin.
  std::map<std::string, std::map<std::int64_t, std::uint32_t>> records_;
  bool first_ = true;
};

}  // namespace

std::vector<std::uint32_t> processes_of(const Timeline& timeline) {
  std::set<std::uint32_t> processes;
  for (const Lane& lane : timeline.lanes) processes.insert(lane.process);
  return {processes.begin(), processes.end()};
}

void write_kineto(const Timeline& timeline, std::uint32_t process, std::ostream& out) {
  RankWriter{timeline, process, out}.write();
}

}  // namespace foretrace
