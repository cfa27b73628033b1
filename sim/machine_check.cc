#include "sim/machine_check.h"

#include <fmt/format.h>

#include "models/cost/products/facts.h"
#include "models/nccl/time/network.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/program/product_type.h"
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

namespace {

/// A way to multiply, the compute capability that it begins at, and what to take instead.
/// CUDA C++ Programming Guide, compute capabilities; cuBLAS's documentation of cublasLtMatmul.
struct Arithmetic {
  const char* name;
  std::uint32_t capability;
  Param peak;
  const char* instead;
};
constexpr Arithmetic kBFloat16{"bfloat16", 80, Param::GpuHalfFlops, "float16"};
constexpr Arithmetic kTf32{"TF32", 80, Param::GpuTf32Flops, "float32 without compute: tf32"};
constexpr Arithmetic kInt8{"int8 matrix", 72, Param::GpuInt8Flops, "float16"};
constexpr Arithmetic kFloat8{"float8", 89, Param::GpuF8Flops, "bfloat16"};
constexpr Arithmetic kFloat4{"float4", 100, Param::GpuF4Flops, "float8_e4m3"};
// What has units of MX types has those of four bits.
constexpr Arithmetic kMx{"MX float8", 100, Param::GpuF4Flops, "scales: tensor or row"};

const Arithmetic* arithmetic_of(DataType type, Scales scales, bool tf32) {
  switch (type) {
    case DataType::BFloat16:
      return &kBFloat16;
    case DataType::Float32:
      return tf32 ? &kTf32 : nullptr;
    case DataType::Int8:
      return &kInt8;
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
      return scales == Scales::Mx ? &kMx : &kFloat8;
    case DataType::Float4E2M1:
      return &kFloat4;
    default:
      return nullptr;
  }
}

std::optional<std::string> why_lacks(const Machine& machine, const Arithmetic& arithmetic) {
  const auto capability =
      machine.node.capability ? machine.node.capability : nccl::gpu_capability(machine.gpu_name);
  // Capabilities are NVIDIA's; of a machine of parts the GPU's facts say what it lacks.
  const bool is_amd = machine.gpu_name.starts_with("AMD");
  const bool lacks = !machine.parts.empty() && !machine.has(arithmetic.peak);
  if (capability && !is_amd && !(lacks && *capability >= arithmetic.capability)) {
    if (*capability >= arithmetic.capability) return {};
    return fmt::format(
        "a '{}' (compute capability {}.{}) has no {} arithmetic, which begins at {}.{}",
        machine.gpu_name, *capability / 10, *capability % 10, arithmetic.name,
        arithmetic.capability / 10, arithmetic.capability % 10);
  }
  // Without a compute capability the GPU's facts say it. All have float16, so a bfloat16 is there.
  if (machine.has(arithmetic.peak) || arithmetic.peak == Param::GpuHalfFlops) return {};
  return fmt::format("a '{}' has no {} arithmetic", machine.gpu_name, arithmetic.name);
}

}  // namespace

std::optional<std::string> why_no_bfloat16(const Machine& machine) {
  return why_lacks(machine, kBFloat16);
}

namespace {

/// Kernels of eight bits and fewer were measured nowhere: their rates follow from a GPU's facts.
bool lacks_rates(DataType type, const Machine& machine) {
  const bool is_few = is_narrow(type) || type == DataType::Int8;
  return is_few && !products::has_gpu_facts(machine);
}

}  // namespace

std::optional<CannotMultiply> why_no_products(const Machine& machine, DataType type, Scales scales,
                                              bool tf32) {
  const Arithmetic* const needed = arithmetic_of(type, scales, tf32);
  if (needed == nullptr) return {};
  if (const auto why = why_lacks(machine, *needed)) {
    return CannotMultiply{*why, fmt::format("{}, or a GPU that has it", needed->instead)};
  }
  if (!lacks_rates(type, machine)) return {};
  return CannotMultiply{fmt::format("machine '{}' has no rates of {} products: its own were "
                                    "measured in 16 and 32 bits",
                                    machine.name, needed->name),
                        "the same GPUs by their parts, as --machine 8xH100-SXM or 8xH200"};
}

Diagnostics unsupported_types(const Program& program, const Machine& machine) {
  Diagnostics errors;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    const auto* const product = std::get_if<Gemm>(&op.kind);
    if (product == nullptr || !errors.empty()) return;
    const auto cannot = why_no_products(machine, product->type, product->scales, product->tf32);
    if (!cannot) return;
    errors.push_back(
        warning(cannot->why, cannot->hint, SourceSpot{program.file, op.line, op.column}));
    errors.back().severity = Severity::Error;
  });
  return errors;
}

}  // namespace foretrace
