// `traffic:` of a scenario with `serving:`, and the values that only it has.
#pragma once

#include "scenarios/read/reader.h"
#include "scenarios/serving/description.h"

namespace foretrace::serving {

Traffic read_traffic(Reader& reader, const YamlNode& node);

/// "30%", up to four decimal places, in millionths from `low` to `high`.
std::int64_t read_share(Reader& reader, const YamlNode& node, std::int64_t low, std::int64_t high);

}  // namespace foretrace::serving
