#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/machine/machine.h"
#include "models/machine/value_text.h"
#include "scenarios/fabric/text.h"

namespace foretrace {
namespace {

using Sources = std::vector<std::shared_ptr<const Source>>;

/// Values that code has set come from what they say themselves.
std::shared_ptr<const Source> source_of(const ParamValue& value) {
  if (value.origin) return value.origin;
  const std::string kind{class_name(value.source)};
  return std::make_shared<const Source>(Source{.id = kind,
                                               .kind = value.source,
                                               .text = value.from.empty() ? kind : value.from,
                                               .learned_from = {},
                                               .command = {}});
}

/// The id under which `source` stands in `sources`, where it is put when it is new: its own, with a
/// number when another source has that.
std::string id_in(Sources& sources, const std::shared_ptr<const Source>& source) {
  // Mostly it stands there already, or is new and keeps its id.
  if (std::ranges::find(sources, source) != sources.end()) return source->id;
  const auto of_id = [&](const std::string& id) {
    return std::ranges::find_if(sources, [&](const auto& one) { return one->id == id; });
  };
  if (of_id(source->id) == sources.end()) {
    sources.push_back(source);
    return source->id;
  }
  Source named = *source;
  for (int number = 2;; ++number) {
    const auto found = of_id(named.id);
    if (found == sources.end()) {
      sources.push_back(std::make_shared<const Source>(named));
      return named.id;
    }
    if (**found == named) return named.id;
    named.id = fmt::format("{}_{}", source->id, number);
  }
}

void emit(YAML::Emitter& out, const LearnedFrom& entry) {
  out << YAML::Flow << YAML::BeginMap;
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) out << YAML::Key << key << YAML::Value << value;
  };
  text("scenario", entry.scenario);
  text("other", entry.other);
  if (!entry.ranks.empty()) out << YAML::Key << "ranks" << YAML::Value << entry.ranks;
  if (entry.sizes) {
    text("sizes", bytes_text(entry.sizes->least) + ".." + bytes_text(entry.sizes->most));
  }
  if (entry.every_other) text("which", "every other");
  text("data", entry.data);
  out << YAML::EndMap;
}

void emit(YAML::Emitter& out, const Source& source) {
  out << YAML::Key << source.id << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "class" << YAML::Value << std::string{class_word(source)};
  out << YAML::Key << "text" << YAML::Value << YAML::DoubleQuoted << source.text;
  if (!source.learned_from.empty()) {
    out << YAML::Key << "learned_from" << YAML::Value << YAML::BeginSeq;
    for (const LearnedFrom& entry : source.learned_from) emit(out, entry);
    out << YAML::EndSeq;
  }
  if (!source.command.empty()) {
    out << YAML::Key << "command" << YAML::Value << YAML::DoubleQuoted << source.command;
  }
  out << YAML::EndMap;
}

void emit(YAML::Emitter& out, const ParamInfo& parameter, const ParamValue& value,
          const std::string& source) {
  out << YAML::Key << std::string{parameter.key} << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "value" << YAML::Value << value_text(value.value, parameter.unit);
  out << YAML::Key << "source" << YAML::Value << source;
  if (!value.range.empty()) out << YAML::Key << "range" << YAML::Value << value.range;
  if (value.spread > 0) {
    out << YAML::Key << "spread" << YAML::Value << fmt::format("{:.1f}%", value.spread * 100);
  }
  out << YAML::EndMap;
}

/// A key whose value is YAML already.
void write_text(YAML::Emitter& out, const char* key, const std::string& yaml) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::Load(yaml);
}

}  // namespace

std::string machine_text(const Machine& machine) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  out << YAML::Key << "schema_version" << YAML::Value << 2;
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
  if (machine.fabric) write_text(out, "fabric", fabric_text(*machine.fabric));
  if (!machine.faults.empty()) write_text(out, "faults", faults_text(machine.faults));
  if (!machine.nccl_version.empty()) {
    out << YAML::Key << "nccl_version" << YAML::Value << machine.nccl_version;
  }
  Sources sources;
  std::vector<std::pair<Param, std::string>> named;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    if (machine.has(param))
      named.emplace_back(param, id_in(sources, source_of(machine.get(param))));
  }
  out << YAML::Key << "parameters" << YAML::Value << YAML::BeginMap;
  for (const auto& [param, source] : named) emit(out, info(param), machine.get(param), source);
  out << YAML::EndMap;
  out << YAML::Key << "sources" << YAML::Value << YAML::BeginMap;
  for (const auto& source : sources) emit(out, *source);
  out << YAML::EndMap << YAML::EndMap;
  return std::string{out.c_str()} + "\n";
}

}  // namespace foretrace
