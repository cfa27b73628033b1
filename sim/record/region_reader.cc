#include "sim/record/region_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretrace {
namespace {

std::uint32_t graph_of(const GraphRef& ref) {
  const auto index = ref.index.is_constant() ? ref.index.eval({}) : 0;
  return ref.first.value + static_cast<std::uint32_t>(index);
}

bool is_copy(const OpKind& kind) {
  return std::holds_alternative<MemcpyAsync>(kind) || std::holds_alternative<Memcpy>(kind);
}

bool is_kernel(const OpKind& kind) {
  return std::holds_alternative<Spin>(kind) || std::holds_alternative<Gemm>(kind) ||
         std::holds_alternative<Elementwise>(kind) || std::holds_alternative<Reduction>(kind) ||
         std::holds_alternative<LibraryKernel>(kind) || std::holds_alternative<MemsetAsync>(kind) ||
         std::holds_alternative<Memset>(kind);
}

/// The region ends when the device has: its time is more than that of host calls.
bool waits(const OpKind& kind) {
  return std::holds_alternative<StreamSynchronize>(kind) ||
         std::holds_alternative<DeviceSynchronize>(kind) ||
         std::holds_alternative<EventSynchronize>(kind) || std::holds_alternative<Memcpy>(kind);
}

bool is_transfer(const OpKind& kind) {
  return std::holds_alternative<NcclSend>(kind) || std::holds_alternative<NcclRecv>(kind);
}

/// NCCL counts one rank's share in these; nccl-tests prints the whole.
bool is_share(CollectiveKind kind) {
  return kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast &&
         kind != CollectiveKind::Reduce;
}

}  // namespace

RegionReader::RegionReader(const Program& program) : program_{program}, infos_{index_ops(program)} {
  std::uint64_t passes = 0;
  for (const OpInfo& info : infos_) {
    if (const auto* capture = std::get_if<GraphCapture>(&info.op->kind)) {
      captures_[graph_of(capture->graph)] = &capture->ops;
    }
    if (const auto* repeat = std::get_if<Repeat>(&info.op->kind); repeat && info.loops.empty()) {
      loop_begins_[info.op->id.value] = passes;
      passes += repeat->times;
    }
  }
}

void RegionReader::collect(const Block& block, std::vector<const Op*>& leaves) const {
  for (const Op& inner : block) {
    if (const Block* inside = block_of(inner.kind)) {
      collect(*inside, leaves);
      continue;
    }
    leaves.push_back(&inner);
    const auto* launch = std::get_if<GraphLaunch>(&inner.kind);
    const auto captured = launch ? captures_.find(graph_of(launch->graph)) : captures_.end();
    if (captured != captures_.end()) collect(*captured->second, leaves);
  }
}

RegionContent RegionReader::content(std::uint32_t region, std::uint64_t instance) const {
  RegionContent content;
  const Block* const block = block_of(op(region).kind);
  if (block == nullptr) {
    content.group = "time between events";
    return content;
  }
  std::vector<const Op*> leaves;
  collect(*block, leaves);
  bool copies = false;
  bool kernels = false;
  bool ends = false;
  for (const Op* leaf : leaves) {
    content.ops.push_back(leaf->id.value);
    copies = copies || is_copy(leaf->kind);
    kernels = kernels || is_kernel(leaf->kind);
    ends = ends || waits(leaf->kind);
    content.graph = content.graph || std::holds_alternative<GraphLaunch>(leaf->kind);
    const auto* collective = std::get_if<NcclCollective>(&leaf->kind);
    if (content.nccl || (collective == nullptr && !is_transfer(leaf->kind))) continue;
    content.nccl = true;
    // "nccl_all_reduce" without its first word
    content.group = fmt::format(
        "NCCL {}", collective ? kind_name(leaf->kind).substr(5) : std::string{"send_recv"});
    std::vector<std::int64_t> variables{0};
    std::vector<std::uint64_t> times;
    for (const OpId loop : infos_[region].loops) {
      times.push_back(std::get<Repeat>(op(loop.value).kind).times);
    }
    for (const auto index : loop_indices(instance, times)) variables.push_back(index);
    variables.resize(std::max(variables.size(), infos_[leaf->id.value].loops.size() + 1));
    if (collective != nullptr) {
      content.bytes = collective->size.eval(variables).count;
      if (is_share(collective->kind)) content.bytes *= program_.processes * program_.devices;
    } else if (const auto* send = std::get_if<NcclSend>(&leaf->kind)) {
      content.bytes = send->size.eval(variables).count;
    } else {
      content.bytes = std::get<NcclRecv>(leaf->kind).size.eval(variables).count;
    }
  }
  if (!content.nccl) {
    content.group = ends && copies ? "copies" : ends && kernels ? "kernels" : "host calls";
  }
  return content;
}

std::uint64_t RegionReader::runs_inside(std::uint32_t inner, std::uint32_t outer) const {
  std::uint64_t runs = 1;
  const auto& loops = infos_[inner].loops;
  for (std::size_t i = infos_[outer].loops.size(); i < loops.size(); ++i) {
    runs *= std::get<Repeat>(op(loops[i].value).kind).times;
  }
  return runs;
}

std::string RegionReader::protocol(const RegionContent& content, std::uint32_t region,
                                   std::uint64_t instance, const Timeline& predicted) const {
  for (const Span& span : predicted.spans) {
    const std::string& protocol = predicted.details[span.detail].protocol;
    if (protocol.empty() || std::ranges::find(content.ops, span.op) == content.ops.end()) continue;
    if (span.instance / runs_inside(span.op, region) == instance) return protocol;
  }
  return {};
}

std::uint64_t RegionReader::pass_of(std::uint32_t region, std::uint64_t instance) const {
  const auto& loops = infos_[region].loops;
  if (loops.empty()) return 0;
  std::uint64_t inside = 1;
  for (std::size_t i = 1; i < loops.size(); ++i) {
    inside *= std::get<Repeat>(op(loops[i].value).kind).times;
  }
  return loop_begins_.at(loops.front().value) + instance / inside;
}

}  // namespace foretrace
