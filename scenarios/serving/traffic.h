// The requests of a scenario's traffic.
#pragma once

#include <vector>

#include "scenarios/serving/description.h"

namespace foretrace::serving {

/// In the order of their arrival; in a closed loop all but the first few without a time.
std::vector<Arrival> arrivals_of(const Traffic& traffic);

/// The longest prompt with its output.
std::int64_t longest(const std::vector<Arrival>& arrivals);

}  // namespace foretrace::serving
