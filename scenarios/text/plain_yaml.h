// YAML that foretrace wrote itself: block maps and lists by indentation, flow collections within a
// line, plain scalars, comments in lines of their own or behind two spaces. For text of a million
// lines.
#pragma once

#include <string_view>

#include "scenarios/text/yaml_reader.h"

namespace foretrace {

/// What parse_yaml() returns for such a text. Throws std::logic_error for any other that it cannot
/// take apart.
YamlNode parse_plain_yaml(std::string_view text);

}  // namespace foretrace
