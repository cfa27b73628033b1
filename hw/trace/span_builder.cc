#include "hw/trace/span_builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "hw/run/program_facts.h"

namespace foretrace::hw {
namespace {

class SpanBuilder {
 public:
  SpanBuilder(const Program& program, const TracedPass& pass)
      : program_{program}, pass_{pass}, infos_{index_ops(program)} {}

  BuiltSpans build() {
    add_host_calls();
    std::vector<const DeviceActivity*> all;
    for (const DeviceActivity& activity : pass_.activities) all.push_back(&activity);
    for (const DeviceActivity& function : pass_.host_functions) all.push_back(&function);
    const auto begins_before = [](const DeviceActivity* a, const DeviceActivity* b) {
      return a->begin_ns < b->begin_ns;
    };
    std::ranges::inplace_merge(
        all, all.begin() + static_cast<std::ptrdiff_t>(pass_.activities.size()), begins_before);
    for (const DeviceActivity* activity : all) add_activity(*activity);
    return std::move(built_);
  }

 private:
  void add_host_calls() {
    for (std::uint32_t thread = 0; thread < pass_.calls.size(); ++thread) {
      if (!runs_in(program_.threads[thread], pass_.process)) continue;
      const std::uint32_t lane =
          add_lane(LaneKind::HostThread, kNoDevice, program_.threads[thread].name);
      for (const HostCall& call : pass_.calls[thread]) {
        add_span(call.execution, lane, call.begin_ns, call.end_ns, 0, 0);
      }
    }
  }

  void add_activity(const DeviceActivity& activity) {
    const std::optional<Execution> cause = cause_of(activity);
    if (!cause) {
      // Before the release the harness itself refilled buffers.
      if (activity.begin_ns >= pass_.released_ns) ++built_.unattributed;
      return;
    }
    const std::uint32_t lane = stream_lane(*cause, activity);
    const PartKey key{cause->op, cause->instance, lane};
    if (activity.kind == DeviceActivity::Kind::Copy && !is_graph(*cause)) {
      // Staged copies come in pieces: one span from the first to the last.
      if (const auto known = copies_.find(key); known != copies_.end()) {
        Span& span = built_.timeline.spans[known->second];
        span.end_ns = std::max(span.end_ns, activity.end_ns - pass_.released_ns);
        return;
      }
      copies_[key] = built_.timeline.spans.size();
    }
    const std::uint32_t part = ++parts_[key];
    add_span(*cause, lane, activity.begin_ns, activity.end_ns, part,
             intern(built_.timeline, detail_of(activity)));
  }

  /// NCCL's kernels say in their name which algorithm they are (the protocol there is not always
  /// the one that runs) and take one block per channel.
  static SpanDetail detail_of(const DeviceActivity& activity) {
    SpanDetail detail;
    detail.kernel = activity.name;
    if (activity.name.starts_with("ncclDevKernel")) {
      detail.channels = activity.grid_blocks;
      if (activity.name.find("_RING_") != std::string::npos) detail.algorithm = "Ring";
      if (activity.name.find("_TREE_") != std::string::npos) detail.algorithm = "Tree";
    }
    return detail;
  }

  /// The operation, resolved from a group to the first of its operations on the stream.
  std::optional<Execution> cause_of(const DeviceActivity& activity) const {
    if (!activity.cause || activity.cause->op >= infos_.size()) return std::nullopt;
    if (!std::holds_alternative<NcclGroup>(infos_[activity.cause->op].op->kind)) {
      return activity.cause;
    }
    const GroupedLaunch* on_device = nullptr;
    for (const GroupedLaunch& grouped : pass_.grouped) {
      if (grouped.group != *activity.cause || grouped.ordinal != activity.ordinal) continue;
      if (grouped.stream_id == activity.stream_id) return grouped.call;
      if (on_device == nullptr) on_device = &grouped;
    }
    // CUPTI did not know the stream: one of the group's operations on the device it was.
    return on_device == nullptr ? std::nullopt : std::optional{on_device->call};
  }

  bool is_graph(Execution cause) const {
    return std::holds_alternative<GraphLaunch>(infos_[cause.op].op->kind);
  }

  std::uint32_t stream_lane(Execution cause, const DeviceActivity& activity) {
    const OpInfo& info = infos_[cause.op];
    const auto variables = variables_at(info, infos_, cause.instance, pass_.process);
    const auto stream = stream_of(program_, info.op->kind, variables);
    const auto device = static_cast<std::uint32_t>(activity.ordinal - pass_.first_ordinal);
    if (!stream)
      return add_lane(LaneKind::Stream, device, "default(" + std::to_string(device) + ")");
    const foretrace::Stream& declared = program_.streams[stream->value];
    return add_lane(LaneKind::Stream, declared.device, declared.name);
  }

  std::uint32_t add_lane(LaneKind kind, std::uint32_t device, const std::string& name) {
    const auto [known, is_new] = lanes_.try_emplace(
        {kind, device, name}, static_cast<std::uint32_t>(built_.timeline.lanes.size()));
    if (is_new) built_.timeline.lanes.push_back({kind, pass_.node, pass_.process, device, name});
    return known->second;
  }

  void add_span(Execution execution, std::uint32_t lane, std::int64_t begin_ns, std::int64_t end_ns,
                std::uint32_t part, std::uint32_t detail) {
    built_.timeline.spans.push_back(
        {execution.op, lane, execution.instance, in_pass(begin_ns), in_pass(end_ns), part, detail});
  }

  /// Since the pass's start, on rank 0's clock.
  std::int64_t in_pass(std::int64_t time_ns) const {
    const auto since = static_cast<double>(time_ns - pass_.compared_ns);
    return time_ns - pass_.released_ns - (pass_.drift == 0 ? 0 : std::llround(pass_.drift * since));
  }

  struct PartKey {
    std::uint32_t op;
    std::uint64_t instance;
    std::uint32_t lane;
    friend auto operator<=>(const PartKey&, const PartKey&) = default;
  };

  const Program& program_;
  const TracedPass& pass_;
  std::vector<OpInfo> infos_;
  BuiltSpans built_;
  std::map<std::tuple<LaneKind, std::uint32_t, std::string>, std::uint32_t> lanes_;
  std::map<PartKey, std::uint32_t> parts_;
  std::map<PartKey, std::size_t> copies_;  ///< index of the span
};

}  // namespace

BuiltSpans build_spans(const Program& program, const TracedPass& pass) {
  return SpanBuilder{program, pass}.build();
}

void add_process(Timeline& timeline, const Timeline& process) {
  const auto first_lane = static_cast<std::uint32_t>(timeline.lanes.size());
  timeline.lanes.insert(timeline.lanes.end(), process.lanes.begin(), process.lanes.end());
  std::vector<std::uint32_t> details;
  for (const SpanDetail& detail : process.details) details.push_back(intern(timeline, detail));
  for (Span span : process.spans) {
    span.lane += first_lane;
    span.detail = details[span.detail];
    timeline.spans.push_back(span);
  }
  timeline.regions.insert(timeline.regions.end(), process.regions.begin(), process.regions.end());
}

}  // namespace foretrace::hw
