#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <cmath>

#include "models/machine/machine.h"

namespace foretrace {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

/// In the largest unit that leaves at least 1 before the point.
std::string scaled(double value, std::initializer_list<Scale> scales) {
  for (const Scale& scale : scales) {
    if (value >= scale.factor) return fmt::format("{:.5g}{}", value / scale.factor, scale.unit);
  }
  const Scale& last = *(scales.end() - 1);
  return fmt::format("{:.5g}{}", value / last.factor, last.unit);
}

std::string value_text(double value, ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return scaled(value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
    case ParamUnit::Size: {
      const bool decimal = std::fmod(value, 1e6) == 0;
      return decimal ? scaled(value, {{1e9, " GB"}, {1e6, " MB"}})
                     : scaled(value, {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}});
    }
    case ParamUnit::Rate:
      return fmt::format("{:.5g} GB/s", value * 1e-9);
    case ParamUnit::FlopRate:
      return fmt::format("{:.5g} TFLOP/s", value * 1e-12);
    case ParamUnit::Count:
    case ParamUnit::Ratio:
      break;
  }
  return fmt::format("{:.5g}", value);
}

constexpr std::array kSources{"fit", "datasheet", "published", "assumed"};

void emit(YAML::Emitter& out, const ParamInfo& parameter, const ParamValue& value) {
  out << YAML::Key << std::string{parameter.key} << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "value" << YAML::Value << value_text(value.value, parameter.unit);
  out << YAML::Key << "source" << YAML::Value << kSources[static_cast<std::size_t>(value.source)];
  if (!value.from.empty())
    out << YAML::Key << "from" << YAML::Value << YAML::DoubleQuoted << value.from;
  if (!value.range.empty()) out << YAML::Key << "range" << YAML::Value << value.range;
  if (value.spread > 0) {
    out << YAML::Key << "spread" << YAML::Value << fmt::format("{:.1f}%", value.spread * 100);
  }
  out << YAML::EndMap;
}

}  // namespace

std::string machine_text(const Machine& machine) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "schema_version" << YAML::Value << 1;
  out << YAML::Key << "name" << YAML::Value << machine.name;
  out << YAML::Key << "summary" << YAML::Value << YAML::DoubleQuoted << machine.summary;
  out << YAML::Key << "node" << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "count" << YAML::Value << machine.nodes;
  out << YAML::Key << "gpus" << YAML::Value << machine.gpus_per_node;
  out << YAML::Key << "gpu" << YAML::Value << machine.gpu_name;
  for (const auto& [key, text] : node_facts_text(machine.node)) {
    out << YAML::Key << key << YAML::Value << text;
  }
  out << YAML::EndMap;
  if (!machine.nccl_version.empty()) {
    out << YAML::Key << "nccl_version" << YAML::Value << machine.nccl_version;
  }
  if (!machine.fit_scenarios.empty()) {
    out << YAML::Key << "fit_scenarios" << YAML::Value << machine.fit_scenarios;
  }
  out << YAML::Key << "parameters" << YAML::Value << YAML::BeginMap;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param)) emit(out, info(param), machine.get(param));
  }
  out << YAML::EndMap << YAML::EndMap;
  return std::string{out.c_str()} + "\n";
}

}  // namespace foretrace
