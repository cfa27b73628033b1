// A comparison as a JSON document: for comparison.json and for the data block of the HTML report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/compare/compare.h"

namespace foretrace {

nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace foretrace
