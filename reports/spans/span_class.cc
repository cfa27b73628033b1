#include "reports/spans/span_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace foretrace {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool waits(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kWaiting{"host_barrier", "host_wait", "event_wait_for",
                                                     "memcpy"};
  return contains(kind, "synchronize") || std::ranges::count(kWaiting, kind) != 0;
}

}  // namespace

SpanClass class_of(const OpRow& op, const Lane& lane) {
  const std::string_view kind = op.kind;
  if (kind.starts_with("request_") || kind.ends_with("iteration")) {
    return contains(kind, "prefill")   ? SpanClass::Prefill
           : contains(kind, "decode")  ? SpanClass::Decode
           : contains(kind, "preempt") ? SpanClass::Preempted
                                       : SpanClass::Waiting;
  }
  if (lane.kind == LaneKind::HostThread) {
    if (kind == "host_compute" || kind == "host_fill" || kind == "host_parallel" ||
        kind == "read_file" || kind == "framework_call")
      return SpanClass::HostWork;
    return waits(kind) ? SpanClass::HostWait : SpanClass::HostCall;
  }
  if (kind.starts_with("nccl")) return SpanClass::Nccl;
  if (kind.starts_with("mem")) return SpanClass::Copy;
  if (contains(kind, "event")) return SpanClass::Order;
  return SpanClass::Kernel;
}

std::string_view name_of(SpanClass span_class) {
  constexpr std::array<std::string_view, kSpanClasses> kNames{
      "host-work", "host-call", "host-wait", "kernel", "copy",     "nccl",
      "order",     "waiting",   "prefill",   "decode", "preempted"};
  return kNames[static_cast<std::size_t>(span_class)];
}

std::string title_of(const OpRow& op) {
  return op.label.empty() ? op.kind : fmt::format("{} {}", op.kind, op.label);
}

std::string full_name(const Lane& lane) {
  std::string name = fmt::format("process {}", lane.process);
  if (lane.device != kNoDevice) name += fmt::format(" / device {}", lane.device);
  return name + " / " + lane.name;
}

}  // namespace foretrace
