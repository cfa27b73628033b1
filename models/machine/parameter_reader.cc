#include "models/machine/parameter_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "models/machine/value_text.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {
namespace {

constexpr double kLargestSpread = 10;

void take_source(const YamlNode& node, const std::vector<std::shared_ptr<const Source>>& sources,
                 ParamValue& value, Problems& problems, std::set<std::string>* used) {
  for (const auto& source : sources) {
    if (source->id != node.text) continue;
    value.origin = source;
    value.source = source->kind;
    value.from = source->text;
    if (used != nullptr) used->insert(source->id);
    return;
  }
  std::vector<std::string> known;
  for (const auto& source : sources) known.push_back(source->id);
  problems.error(node, fmt::format("no source '{}' stands under sources:", node.text),
                 known.empty() ? "sources: {ID: {class: assumed, text: \"...\"}} at the end"
                               : suggest(node.text, known));
}

void check_range(Param param, double value, const YamlNode& node, Problems& problems) {
  if (const auto problem = out_of_range(param, value)) problems.error(node, *problem);
  if (is_counted(param) && value != std::floor(value)) {
    problems.error(node, fmt::format("{} is a whole number", info(param).key));
  }
}

}  // namespace

double read_value(const YamlNode& node, ParamUnit unit, Problems& problems) {
  const Parsed<double> value = parse_value(node.text, unit);
  if (value) return *value;
  problems.error(node, value.error().message, value.error().hint, value.error().offset);
  return 1;
}

std::vector<ParameterEntry> read_parameter_entries(
    const YamlNode& node, const std::vector<std::shared_ptr<const Source>>& sources,
    Problems& problems, std::set<std::string>* used) {
  MapReader all{node, "parameters", problems};
  std::vector<ParameterEntry> entries;
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    const YamlNode* const entry = all.optional(info(param).key);
    if (entry == nullptr) continue;
    MapReader map{*entry, fmt::format("parameter {}", info(param).key), problems};
    ParamValue value;
    if (const YamlNode* text = map.required("value")) {
      value.value = read_value(*text, info(param).unit, problems);
      check_range(param, value.value, *text, problems);
    }
    if (const YamlNode* source = map.required("source")) {
      take_source(*source, sources, value, problems, used);
    }
    if (const YamlNode* from = map.optional("from")) {
      problems.error(*from, "a parameter names its source and says no more",
                     "sources: {ID: {class: assumed, text: \"...\"}} at the end, source: ID here");
    }
    if (const YamlNode* range = map.optional("range")) value.range = range->text;
    if (const YamlNode* spread = map.optional("spread")) {
      value.spread = read_value(*spread, ParamUnit::Ratio, problems);
      if (value.spread < 0 || value.spread > kLargestSpread) {
        problems.error(*spread, fmt::format("a spread lies between 0 and {}", kLargestSpread));
      }
    }
    map.finish();
    entries.emplace_back(param, std::move(value));
  }
  all.finish();
  return entries;
}

}  // namespace foretrace
