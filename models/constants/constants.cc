#include "models/constants/constants.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

using Constants = std::map<std::string, double, std::less<>>;

double in_si(const std::string& file, const YAML::Node& name, const std::string& text) {
  const Parsed<Quantity> parsed = parse_constant(text);
  if (!parsed) {
    throw UsageError{fmt::format("{}:{}: error: {}: {}", file, name.Mark().line + 1, name.Scalar(),
                                 parsed.error().message)};
  }
  const double value = parsed->constant.to_double();
  if (parsed->unit == kTime) return value * 1e-12;
  if (parsed->unit == kRate) return value * 1e12;
  return value;
}

Constants read() {
  const std::string file = (data_directory() / "models/constants/constants.yaml").string();
  Constants all;
  try {
    for (const auto& entry : YAML::Load(read_text_file(file))) {
      const std::string text = entry.second["value"].as<std::string>();
      if (!entry.second["of"]) {
        throw UsageError{fmt::format("{}:{}: error: {} does not say what it was seen on ('of')",
                                     file, entry.first.Mark().line + 1, entry.first.Scalar())};
      }
      all.emplace(entry.first.Scalar(), in_si(file, entry.first, text));
    }
  } catch (const YAML::Exception& error) {
    throw UsageError{fmt::format("{}: error: {}", file, error.what())};
  }
  return all;
}

}  // namespace

double constant(std::string_view name) {
  static const Constants kAll = read();
  const auto found = kAll.find(name);
  if (found == kAll.end()) {
    throw UsageError{fmt::format("models/constants/constants.yaml: error: no '{}'", name)};
  }
  return found->second;
}

Duration constant_time(std::string_view name) { return seconds_to_duration(constant(name)); }

Bytes constant_size(std::string_view name) {
  return {static_cast<std::uint64_t>(std::llround(constant(name)))};
}

std::int64_t constant_count(std::string_view name) { return std::llround(constant(name)); }

}  // namespace foretrace
