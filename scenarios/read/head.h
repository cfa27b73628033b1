// What every scenario begins with, whether threads follow, a training step or a captured one: name,
// standing, parameters, who runs, network and environment.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/program/program.h"
#include "scenarios/read/reader.h"
#include "scenarios/read/scenario.h"

namespace foretrace {

/// "# Prefetch: batch i+1 crosses PCIe ...": what the file shows.
std::string first_comment(std::string_view text);

bool has_key(const YamlNode& root, std::string_view key);

/// The keys that all have, into reader.program.
void read_head(Reader& reader, MapReader& map, const ParameterValues& parameters);

void warn_of_unused_parameters(Reader& reader);

}  // namespace foretrace
