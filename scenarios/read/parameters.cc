#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/program/environment.h"
#include "scenarios/read/reader.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::array kReservedNames{"process", "processes", "devices", "nodes"};

/// A word, or a quantity of known parameters; the error when it is neither.
tl::expected<Parameter, QuantityError> parse_parameter(Reader& reader, const std::string& text) {
  auto quantity =
      parse_quantity(text, [&reader](std::string_view name) { return look_up(reader, name); });
  if (quantity) return Parameter{text, std::make_shared<Quantity>(*std::move(quantity)), {}};
  if (is_name(text)) return Parameter{text, nullptr, {}};
  return tl::unexpected{quantity.error()};
}

Parameter broken() {
  Parameter parameter{"0", std::make_shared<Quantity>(), {}};
  parameter.is_broken = true;
  return parameter;
}

/// Refused already: what uses it is no further mistake.
void refuse(Reader& reader, const YamlEntry& entry) {
  Parameter parameter = broken();
  parameter.key = entry.key;
  parameter.used = true;
  reader.parameters.insert_or_assign(entry.key.text, std::move(parameter));
}

std::string kind_of(const Parameter& parameter) {
  return parameter.quantity ? describe(parameter.quantity->unit) : "a word";
}

void read_one(Reader& reader, const YamlEntry& entry, const ParameterValues& given) {
  const std::string& name = entry.key.text;
  if (name.ends_with(')') && entry.value.kind == YamlNode::Kind::Null) {
    reader.problems.error(entry.key, fmt::format("'{}' is no parameter", name),
                          "inside of {...} a comma ends the value: write it in quotes");
    return;
  }
  if (!is_name(name) || std::ranges::find(kReservedNames, name) != kReservedNames.end()) {
    reader.problems.error(entry.key, fmt::format("'{}' cannot be a parameter's name", name),
                          "letters, digits and '_', and not process, processes, devices, nodes");
    return refuse(reader, entry);
  }
  if (entry.value.kind != YamlNode::Kind::Scalar) {
    reader.problems.error(entry.value, fmt::format("parameter '{}' needs a single value", name));
    return refuse(reader, entry);
  }
  auto parameter = parse_parameter(reader, entry.value.text);
  if (!parameter) {
    const QuantityError& error = parameter.error();
    if (error.is_told) {
      reader.problems.count_error();
    } else {
      reader.problems.error(entry.value, error.message, error.hint, error.offset);
    }
    parameter = broken();
  } else if (const auto value = given.find(name); value != given.end()) {
    auto chosen = parse_parameter(reader, value->second);
    if (!chosen) {
      reader.problems.add(
          0, 0, Severity::Error,
          fmt::format("--set {}={}: {}", name, value->second, chosen.error().message),
          chosen.error().hint);
      parameter = broken();
    } else if (kind_of(*chosen) != kind_of(*parameter)) {
      reader.problems.add(0, 0, Severity::Error,
                          fmt::format("--set {}={}: the parameter is {}, and this is {}", name,
                                      value->second, kind_of(*parameter), kind_of(*chosen)),
                          fmt::format("the file says {}: {}", name, entry.value.text));
      parameter = broken();
    } else {
      parameter = std::move(chosen);
    }
  }
  parameter->key = entry.key;
  reader.parameters.insert_or_assign(name, *std::move(parameter));
}

}  // namespace

void read_parameters(Reader& reader, const YamlNode* node, const ParameterValues& given) {
  if (node != nullptr) {
    MapReader map{*node, "parameters", reader.problems};
    for (const YamlEntry& entry : node->entries) read_one(reader, entry, given);
  }
  std::vector<std::string> known;
  known.reserve(reader.parameters.size());
  for (const auto& [name, parameter] : reader.parameters) known.push_back(name);
  for (const auto& [name, value] : given) {
    if (reader.parameters.contains(name)) continue;
    reader.problems.add(
        0, 0, Severity::Error,
        fmt::format("--set {}={}: the scenario has no parameter '{}'", name, value, name),
        suggest(name, known));
  }
}

void read_environment(Reader& reader, const YamlNode* node) {
  if (node == nullptr) return;
  // What a scenario may ask of CUDA and NCCL; nothing else of the environment is its business.
  std::map<std::string, const YamlNode*> values;
  MapReader map{*node, "environment", reader.problems};
  for (const YamlEntry& entry : node->entries) {
    const std::string& name = entry.key.text;
    if (std::ranges::find(environment_names(), name) == environment_names().end()) {
      const EnvironmentProblem unknown = unknown_variable(name);
      reader.problems.error(entry.key, unknown.message, unknown.hint);
      continue;
    }
    const std::string value = read_word(reader, entry.value, "a variable's value", ",:;^=");
    if (value.empty()) continue;
    values[name] = &entry.value;
    reader.program.environment[name] = value;
    reader.program.environment_spots[name] = {reader.problems.file(), entry.key.place().first,
                                              entry.key.place().second};
  }
  for (const EnvironmentProblem& wrong : check_environment(reader.program.environment)) {
    reader.problems.error(*values.at(wrong.name), wrong.message, wrong.hint);
  }
}

}  // namespace foretrace
