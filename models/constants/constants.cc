#include "models/constants/constants.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

using Constants = std::map<std::string, double, std::less<>>;

double in_si(const YamlNode& node, Problems& problems) {
  const Parsed<Quantity> parsed = parse_constant(node.text);
  if (!parsed) {
    problems.error(node, parsed.error().message, parsed.error().hint, parsed.error().offset);
    return 0;
  }
  const double value = parsed->constant.to_double();
  if (parsed->unit == kTime) return value * 1e-12;
  if (parsed->unit == kRate) return value * 1e12;
  return value;
}

Constants read() {
  const std::string file = (data_directory() / "models/constants/constants.yaml").string();
  const std::string text = read_text_file(file);
  Problems problems{file};
  const YamlNode root = parse_yaml(text, problems);
  Constants all;
  for (const YamlEntry& entry : root.entries) {
    MapReader map{entry.value, "a constant", problems};
    if (const YamlNode* value = map.required("value")) {
      all.emplace(entry.key.text, in_si(*value, problems));
    }
    map.required("of");  // what it was seen on
    map.finish();
  }
  if (problems.error_count() > 0) throw UsageError{render(problems.take(), text)};
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
