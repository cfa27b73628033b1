// Reads `fabric:`, `faults:` and `placement:`. What is impossible is an error at its place.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scenarios/fabric/fabric.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/unit.h"

namespace foretrace {

/// How values are read where the block stands: in a scenario with parameters, else plainly.
struct FabricValues {
  /// A constant in base units of the unit, which it has, in SI (seconds); empty: reported already.
  std::function<std::optional<double>(const YamlNode&, Unit)> value;
  /// A word; empty: reported already.
  std::function<std::string(const YamlNode&)> word;
};

/// Values without names in them.
FabricValues plain_fabric_values(Problems& problems);

Fabric read_fabric(const YamlNode& node, Problems& problems, const FabricValues& values);
std::vector<MachineFault> read_faults(const YamlNode& node, Problems& problems,
                                      const FabricValues& values);
Placement read_placement(const YamlNode& node, Problems& problems, const FabricValues& values);
/// By its name, as an option has it. Throws UsageError.
Placement parse_placement(const std::string& name);

}  // namespace foretrace
