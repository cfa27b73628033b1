// A sweep's rows as a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/applications/sweep/point.h"

namespace foretrace::sweep {

/// One self-contained HTML file: for each region a curve over the first axis of numbers, one for
/// each combination of the others, and all rows with their ratios.
std::string page_of(const Sweep& sweep, const std::vector<nlohmann::ordered_json>& rows);

}  // namespace foretrace::sweep
