#include "reports/calls/executions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <tuple>

#include "reports/spans/span_join.h"
#include "scenarios/captured/kernel_name.h"

namespace foretrace {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kCollectives{
    {{"AllReduce", "all_reduce"},
     {"AllGather", "all_gather"},
     {"ReduceScatter", "reduce_scatter"},
     {"Broadcast", "broadcast"},
     {"Reduce", "reduce"},
     {"SendRecv", "send_recv"},
     {"AlltoAll", "all_to_all"},
     {"AllToAll", "all_to_all"}}};

/// Of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)".
std::string collective_of(std::string_view kernel) {
  for (const auto& [name, word] : kCollectives) {
    if (kernel.find(name) != std::string_view::npos) return std::string{word};
  }
  return "nccl";
}

/// "h2d" of "h2d pinned": what the host's memory is differs in name alone.
std::string way_of(const std::string& variant) { return variant.substr(0, variant.find(' ')); }

bool is_collective(const OpRow& op) { return op.kind.starts_with("nccl_"); }

std::string collective_of(const OpRow& op) {
  if (op.captured) return collective_of(op.label);
  const std::string word = op.kind.substr(std::string_view{"nccl_"}.size());
  if (word == "send" || word == "recv" || word == "group") return "send_recv";
  return word == "alltoall" ? "all_to_all" : word;
}

void name_execution(Execution& one, const OpRow& op, const SpanDetail& detail) {
  if (op.kind.starts_with("memcpy")) {
    one.exact =
        fmt::format("copy {} {}", way_of(op.captured ? op.label : op.variant), op.size_bytes);
  } else if (op.kind.starts_with("memset")) {
    one.exact = fmt::format("memset {}", op.size_bytes);
  } else if (is_collective(op)) {
    one.exact = collective_of(op);
  } else if (op.kind == "graph_launch") {
    one.exact = op.kind;
  } else if (op.captured) {
    one.exact = captured::kernel_word(detail.kernel.empty() ? op.label : detail.kernel);
    one.operation = captured::operation_word(op.variant);
  } else {
    one.exact = op.kind == "gemm" ? op.kind : op.variant;
    one.operation = op.label;
  }
}

}  // namespace

std::map<std::uint32_t, std::vector<Execution>> executions_of(const Timeline& timeline) {
  struct FoundExecution {
    std::uint32_t process, op;
    std::uint64_t instance;
    auto operator<=>(const FoundExecution&) const = default;
  };
  std::map<FoundExecution, Execution> all;
  for (const Span& span : timeline.spans) {
    const Lane& lane = timeline.lanes[span.lane];
    if (span.part == 0 || lane.kind != LaneKind::Stream) continue;
    const OpRow& op = timeline.ops[span.op];
    if (op.kind == "event_record" || op.kind == "stream_wait_event") continue;
    auto [at, is_new] = all.try_emplace({lane.process, span.op, span.instance});
    Execution& one = at->second;
    if (!is_new && span.part != 1) continue;
    one.op = span.op;
    one.instance = span.instance;
    one.called_ns = span.begin_ns;
    name_execution(one, op, timeline.details[span.detail]);
  }
  for (const Span& span : timeline.spans) {
    if (span.part != 0) continue;
    const auto at = all.find({timeline.lanes[span.lane].process, span.op, span.instance});
    if (at != all.end()) at->second.called_ns = span.begin_ns;
  }
  std::map<std::uint32_t, std::vector<Execution>> by_process;
  for (auto& [found, one] : all) by_process[found.process].push_back(std::move(one));
  for (auto& [process, list] : by_process) {
    std::ranges::stable_sort(list, {}, &Execution::called_ns);
  }
  return by_process;
}

std::string operation_family(const OpRow& op) {
  if (op.kind.starts_with("memcpy")) return "copy " + way_of(op.captured ? op.label : op.variant);
  if (op.kind.starts_with("memset")) return "memset";
  if (is_collective(op)) return collective_of(op);
  if (op.kind == "graph_launch") return op.kind;
  if (!op.captured) return op.label.empty() ? op.kind : op.label;
  const std::string operation = captured::operation_word(op.variant);
  return op.variant.empty() ? op.label : operation;
}

}  // namespace foretrace
