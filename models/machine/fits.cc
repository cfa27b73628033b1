// Whether a machine is large enough for a program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "models/machine/machine.h"

namespace foretrace {
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

/// "139.8 GiB", as nvidia-smi and allocators count.
std::string gib(Bytes size) {
  return fmt::format("{:.1f} GiB", static_cast<double>(size.count) / (1024.0 * 1024 * 1024));
}

/// Buffers of one declaration: x(0), x(1), ...
struct BufferFamily {
  std::string_view name;
  std::uint64_t count = 0;
  Bytes all;
};

/// Of buffers: what is there at some time for certain, and what would be if all of them were.
struct Need {
  Bytes least, most;
  friend bool operator==(const Need&, const Need&) = default;
};

/// What the program allocates itself need not be there together: of that the largest one counts.
Need need_of(const Program& program, auto&& counts) {
  Bytes declared, largest, allocated;
  for (const Buffer& buffer : program.buffers) {
    if (!counts(buffer)) continue;
    if (buffer.allocated_by_program) {
      largest = std::max(largest, buffer.size);
      allocated = allocated + buffer.size;
    } else {
      declared = declared + buffer.size;
    }
  }
  return {declared + largest, declared + allocated};
}

/// "device 0", "device 0 and 15 others".
std::string devices_text(const std::vector<std::uint32_t>& devices) {
  const std::size_t others = devices.size() - 1;
  if (others == 0) return fmt::format("device {}", devices.front());
  return fmt::format("device {} and {} other{}", devices.front(), others, others == 1 ? "" : "s");
}

/// An error where it cannot fit into `has` of what `where` names, a warning where it may not. `who`
/// are so many that share that.
void judge_memory(const Program& program, const Need& need, Bytes has, std::uint64_t many,
                  std::string_view who, std::string_view where, std::string hint,
                  Diagnostics& problems) {
  const Bytes room{has.count / many};
  if (need.most <= room) return;
  const bool is_certain = need.least > room;
  problems.push_back(
      {{program.file, 0, 0},
       fmt::format("{} need {}{}, {} has {}", who, gib(is_certain ? need.least : need.most),
                   is_certain ? "" : " where all of them are there at once", where, gib(has)),
       std::move(hint),
       is_certain ? Severity::Error : Severity::Warning});
}

/// "largest: 'x' 64.0 GiB, 'y' 2 of 8.0 GiB each", of those that count.
std::string largest_of(const Program& program, auto&& counts) {
  constexpr std::size_t kNamed = 3;
  std::map<std::string_view, BufferFamily> by_name;
  for (const Buffer& buffer : program.buffers) {
    if (!counts(buffer)) continue;
    const std::string_view name = std::string_view{buffer.name}.substr(0, buffer.name.find('('));
    BufferFamily& family = by_name.emplace(name, BufferFamily{name, 0, {}}).first->second;
    ++family.count;
    family.all = family.all + buffer.size;
  }
  std::vector<BufferFamily> families;
  for (const auto& [name, family] : by_name) families.push_back(family);
  std::ranges::stable_sort(families, std::greater{}, [](const auto& one) { return one.all.count; });
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(kNamed, families.size()); ++i) {
    const BufferFamily& one = families[i];
    named.push_back(one.count == 1 ? fmt::format("'{}' {}", one.name, gib(one.all))
                                   : fmt::format("'{}' {} of {} each", one.name, one.count,
                                                 gib({one.all.count / one.count})));
  }
  return fmt::format("largest: {}", fmt::join(named, ", "));
}

}  // namespace

Diagnostics check_memory(const Program& program, const Machine& machine) {
  Diagnostics problems;
  const auto on = [](std::uint32_t device) {
    return [device](const Buffer& buffer) {
      return buffer.memory == MemoryKind::Device && buffer.device == device;
    };
  };
  std::vector<std::pair<Need, std::vector<std::uint32_t>>> alike;
  for (std::uint32_t device = 0; device < program.devices; ++device) {
    const Need need = need_of(program, on(device));
    const auto known = std::ranges::find(alike, need, [](const auto& one) { return one.first; });
    if (known == alike.end()) {
      alike.push_back({need, {device}});
    } else {
      known->second.push_back(device);
    }
  }
  for (const auto& [need, devices] : alike) {
    if (!machine.has(Param::GpuMemory)) break;
    judge_memory(program, need, machine.size(Param::GpuMemory), 1,
                 fmt::format("the buffers on {}{}", devices_text(devices),
                             devices.size() > 1 ? " each" : ""),
                 fmt::format("a GPU of machine '{}'", machine.name),
                 largest_of(program, on(devices.front())) +
                     "; make them smaller, or spread them over devices",
                 problems);
  }
  const auto on_host = [](const Buffer& buffer) { return buffer.memory != MemoryKind::Device; };
  if (machine.has(Param::HostMemory)) {
    const std::uint64_t processes = program.processes / nodes_of(program, machine);
    judge_memory(program, need_of(program, on_host), machine.size(Param::HostMemory), processes,
                 processes == 1 ? "host buffers"
                                : fmt::format("host buffers of each of {} processes", processes),
                 fmt::format("a node of machine '{}'", machine.name),
                 largest_of(program, on_host) + "; make them smaller", problems);
  }
  return problems;
}

Diagnostics check_parts(const Program& program, const Machine& machine) {
  Diagnostics problems;
  const std::uint32_t nodes = nodes_of(program, machine);
  check_faults(program, machine, nodes, problems);
  const std::uint32_t per_node = program.processes / nodes * program.devices;
  if (per_node > machine.gpus_per_node) {
    const std::uint64_t gpus = std::uint64_t{program.processes} * program.devices;
    problems.push_back(
        {{program.file, 0, 0},
         fmt::format("the scenario needs {} node(s) with {} GPU(s) each, a node of machine '{}' "
                     "has {}",
                     nodes, per_node, machine.name, machine.gpus_per_node),
         fmt::format("spread it over more nodes, nodes: {}, or choose a larger machine: "
                     "foretrace list machines",
                     nodes_for(gpus, machine))});
  }
  return problems;
}

Diagnostics check_fits(const Program& program, const Machine& machine) {
  Diagnostics problems = check_parts(program, machine);
  for (Diagnostic& one : check_memory(program, machine)) {
    if (one.severity == Severity::Error) problems.push_back(std::move(one));
  }
  return problems;
}

}  // namespace foretrace
