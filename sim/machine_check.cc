#include "sim/machine_check.h"

#include <fmt/format.h>

#include "models/nccl/time/network.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

bool has_network(const Machine& machine) {
  Reading read{machine};
  return nccl::Network{read, nccl::Topology{}}.is_known();
}

Diagnostic warning(std::string message, std::string hint, SourceSpot at = {}) {
  Diagnostic one;
  one.at = std::move(at);
  one.message = std::move(message);
  one.hint = std::move(hint);
  one.severity = Severity::Warning;
  return one;
}

}  // namespace

Diagnostics check_network(std::uint32_t nodes, const Machine& machine) {
  if (nodes < 2) return {};
  const bool is_known = has_network(machine);
  const std::string hint = fmt::format(
      "node: {{count: {}, nics: ..., nic_bandwidth: ...}} in a machine file of its own, based_on: "
      "{}",
      nodes, machine.name);
  if (nodes > machine.nodes) {
    return {warning(
        fmt::format("{} nodes, and machine '{}' describes {}: the network between them is {}",
                    nodes, machine.name, machine.nodes,
                    is_known ? "taken to be as wide as the file's"
                             : "assumed, InfiniBand with a NIC of 400 Gb/s for each GPU"),
        hint)};
  }
  if (is_known) return {};
  return {
      warning(fmt::format("machine '{}' has no times of the network between its nodes: those of "
                          "InfiniBand are assumed",
                          machine.name),
              {})};
}

std::optional<std::string> why_no_bfloat16(const Machine& machine) {
  constexpr std::uint32_t kBFloat16 = 80;  // CUDA C++ Programming Guide, compute capabilities
  const auto capability =
      machine.node.capability ? machine.node.capability : nccl::gpu_capability(machine.gpu_name);
  if (!capability || *capability >= kBFloat16) return {};
  return fmt::format(
      "a '{}' (compute capability {}.{}) has no bfloat16 arithmetic, which begins at 8.0",
      machine.gpu_name, *capability / 10, *capability % 10);
}

Diagnostics unsupported_types(const Program& program, const Machine& machine) {
  const auto why = why_no_bfloat16(machine);
  Diagnostics errors;
  if (!why) return errors;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    const auto* const product = std::get_if<Gemm>(&op.kind);
    if (product == nullptr || product->type != DataType::BFloat16 || !errors.empty()) return;
    errors.push_back(
        warning(*why, "float16, or a GPU that has it", {program.file, op.line, op.column}));
    errors.back().severity = Severity::Error;
  });
  return errors;
}

}  // namespace foretrace
