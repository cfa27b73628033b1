// A sweep's rows as a CSV table, a column for each axis and each region.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/applications/sweep/point.h"

namespace foretrace::sweep {

/// Times in microseconds; a region's band in NAME.low_us and NAME.high_us, its ratio to the point
/// that `against` names in NAME.ratio, the band of that in NAME.ratio_low and NAME.ratio_high. What
/// a row lacks is empty.
std::string csv_of(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace foretrace::sweep
