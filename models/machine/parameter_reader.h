// The map below `parameters:` of a machine's, a rule's or a host's file: KEY: {value, source,
// range, spread}.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/machine/machine.h"
#include "models/machine/source.h"

namespace foretrace {

class Problems;
struct YamlNode;

using ParameterEntry = std::pair<Param, ParamValue>;

/// In the catalogue's order. Mistakes go to `problems`; `used` gets the ids of the sources that
/// were named.
std::vector<ParameterEntry> read_parameter_entries(
    const YamlNode& node, const std::vector<std::shared_ptr<const Source>>& sources,
    Problems& problems, std::set<std::string>* used = nullptr);

/// A value with its unit; 1 where it is none, and a problem.
double read_value(const YamlNode& node, ParamUnit unit, Problems& problems);

}  // namespace foretrace
