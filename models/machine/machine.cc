#include "models/machine/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

constexpr std::array<ParamInfo, kParamCount> kCatalogue{{
#define PARAMETER(name, key, unit, text) {key, ParamUnit::unit, text},
#include "models/machine/parameters.def"
#undef PARAMETER
}};

Bytes sum_of(const Program& program, auto&& counts) {
  Bytes sum;
  for (const Buffer& buffer : program.buffers) {
    if (counts(buffer)) sum = sum + buffer.size;
  }
  return sum;
}

}  // namespace

const ParamInfo& info(Param param) { return kCatalogue[static_cast<std::size_t>(param)]; }

std::optional<Param> param_named(std::string_view key) {
  for (std::size_t i = 0; i < kParamCount; ++i) {
    if (info(static_cast<Param>(i)).key == key) return static_cast<Param>(i);
  }
  return {};
}

const ParamValue& Machine::get(Param param) const {
  const auto& value = values_[index(param)];
  if (!value) {
    throw UsageError{
        fmt::format("machine '{}' has no parameter '{}' ({}), and this program needs it", name,
                    info(param).key, info(param).text)};
  }
  return *value;
}

std::string class_counts(const Machine& machine) {
  std::array<std::size_t, 4> counts{};
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param)) ++counts[static_cast<std::size_t>(machine.get(param).source)];
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    parts.push_back(fmt::format("{} {}", counts[i], class_name(static_cast<ParameterClass>(i))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::uint32_t nodes_for(std::uint64_t gpus, const Machine& machine) {
  const std::uint64_t each = std::max(machine.gpus_per_node, 1U);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (gpus + each - 1) / each));
}

std::uint32_t nodes_of(const Program& program, const Machine& machine) {
  if (!program.nodes_follow) return program.nodes;
  const std::uint64_t gpus = std::uint64_t{program.processes} * program.devices;
  std::uint32_t nodes = std::max(program.nodes, nodes_for(gpus, machine));
  while (nodes < program.processes && program.processes % nodes != 0) ++nodes;
  return std::min(nodes, program.processes);
}

std::optional<Program> spread_over_nodes(const Program& program, const Machine& machine) {
  const std::uint32_t nodes = nodes_of(program, machine);
  if (nodes == program.nodes) return std::nullopt;
  Program spread = program;
  spread.nodes = nodes;
  spread.nodes_follow = false;
  return spread;
}

std::vector<MachineFault> faults_of(const Program& program, const Machine& machine) {
  std::vector<MachineFault> faults = machine.faults;
  faults.insert(faults.end(), program.faults.begin(), program.faults.end());
  return faults;
}

namespace {

/// Faults of nodes that the program does not have, or of parts that nodes do not have.
void check_faults(const Program& program, const Machine& machine, std::uint32_t nodes,
                  Diagnostics& problems) {
  const std::uint32_t nics = machine.node.nics.value_or(machine.gpus_per_node);
  for (const MachineFault& fault : program.faults) {
    const SourceSpot at{program.file, fault.line, fault.column};
    const bool is_nic = fault.part == MachineFault::Part::Nic;
    const std::uint32_t parts = is_nic ? nics : machine.gpus_per_node;
    if (fault.node && *fault.node >= nodes) {
      problems.push_back({at,
                          fmt::format("a fault of node {}: there are {} nodes", *fault.node, nodes),
                          fmt::format("nodes are numbered 0 to {}", nodes - 1)});
    } else if (fault.part != MachineFault::Part::Leaf && fault.index && *fault.index >= parts) {
      problems.push_back({at,
                          fmt::format("a fault of {} {}: a node of machine '{}' has {}",
                                      is_nic ? "NIC" : "GPU", *fault.index, machine.name, parts),
                          fmt::format("they are numbered 0 to {}", parts - 1)});
    } else if ((is_nic || fault.part == MachineFault::Part::Leaf) && !program.fabric &&
               !machine.fabric) {
      problems.push_back({at, "a fault of the network needs to know the network",
                          "fabric: {kind: none} for full bisection"});
    }
  }
}

}  // namespace

Diagnostics check_fits(const Program& program, const Machine& machine) {
  Diagnostics problems;
  const std::uint32_t nodes = nodes_of(program, machine);
  check_faults(program, machine, nodes, problems);
  const auto problem = [&](std::string message, std::string hint) {
    problems.push_back({{program.file, 0, 0}, std::move(message), std::move(hint)});
  };
  const std::uint32_t per_node = program.processes / nodes * program.devices;
  if (per_node > machine.gpus_per_node) {
    const std::uint64_t gpus = std::uint64_t{program.processes} * program.devices;
    problem(fmt::format("the scenario needs {} node(s) with {} GPU(s) each, a node of machine '{}' "
                        "has {}",
                        nodes, per_node, machine.name, machine.gpus_per_node),
            fmt::format("spread it over more nodes, nodes: {}, or choose a larger machine: "
                        "foretrace list machines",
                        nodes_for(gpus, machine)));
  }
  for (std::uint32_t device = 0; device < program.devices; ++device) {
    const Bytes need = sum_of(program, [&](const Buffer& buffer) {
      return buffer.memory == MemoryKind::Device && buffer.device == device;
    });
    if (machine.has(Param::GpuMemory) && need > machine.size(Param::GpuMemory)) {
      problem(fmt::format("the buffers on device {} need {} bytes, a GPU of machine '{}' has {}",
                          device, need.count, machine.name, machine.size(Param::GpuMemory).count),
              "make the buffers smaller, or spread them over devices");
    }
  }
  const Bytes host =
      sum_of(program, [](const Buffer& buffer) { return buffer.memory != MemoryKind::Device; });
  const std::uint64_t processes_per_node = program.processes / nodes;
  if (machine.has(Param::HostMemory) &&
      host.count > machine.size(Param::HostMemory).count / processes_per_node) {
    problem(
        fmt::format(
            "host buffers need {} bytes in each of {} processes, a node of machine '{}' has {}",
            host.count, processes_per_node, machine.name, machine.size(Param::HostMemory).count),
        "make the host buffers smaller");
  }
  return problems;
}

}  // namespace foretrace
