#include "sim/machine_check.h"

#include <fmt/format.h>

#include "models/nccl/time/network.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/made_from.h"

namespace foretrace {
namespace {

constexpr const char* kMachineDigest = "machine_digest";

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

std::string digest_of_machine(const Machine& machine) {
  std::string text = machine_text(machine);  // of one that is based on another only what differs
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param)) text += fmt::format("{} {}\n", i, machine.get(param).value);
  }
  return digest_of(text);
}

void note_made_from(Origin& origin, const Machine& machine) {
  origin.versions[kMachineDigest] = digest_of_machine(machine);
  origin.versions["build"] = build_id();
}

void check_predicted_on(const Origin& origin, const Machine& machine) {
  const auto was = origin.versions.find(kMachineDigest);
  if (was == origin.versions.end() || was->second == digest_of_machine(machine)) return;
  throw UsageError{
      fmt::format("the timeline was predicted on another '{}' than the one that is here: its file "
                  "changed, or another file has that name\n"
                  "  hint: simulate once more, or --machine FILE",
                  origin.machine)};
}

}  // namespace foretrace
