// Regions that are one operation in many sizes, as pictures: time over size, and the bandwidth that
// it makes, each with the band of the prediction and of the repetitions.
#pragma once

#include <string>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/page/curves.h"

namespace foretrace {

/// Of one sweep: time, and bandwidth where its operation has one.
struct Sweep {
  std::string name;  ///< the region's, or its operation's where every size has a region of its own
  Chart time;
  Chart rate;  ///< without curves when there is no rate
};

/// Three sizes or more make a sweep. `both`: the second side is there.
std::vector<Sweep> sweeps_of(const Comparison& comparison, bool both);

}  // namespace foretrace
