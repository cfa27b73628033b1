#include "models/machine/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

constexpr std::array<ParamInfo, kParamCount> kCatalogue{{
#define PARAMETER(name, key, unit, text) {key, ParamUnit::unit, text},
#include "models/machine/parameters.def"
#undef PARAMETER
}};

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

}  // namespace foretrace
