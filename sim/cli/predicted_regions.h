// What `simulate` says of a timeline's regions: one row for each, by the process that takes
// longest.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// One region, and one turn of the loops around it, over all processes that have it.
struct PredictedRegion {
  std::string name;
  int line{};
  std::uint64_t instance{};    ///< which turn of the loops around it, from 0
  std::uint64_t per = 1;       ///< the times below are divided by it
  std::uint32_t process{};     ///< the slowest one, which decides
  double ns{};                 ///< its time
  double low_ns{}, high_ns{};  ///< its band; both are `ns` where the time is given
  std::uint32_t processes{};   ///< that have the region
  std::uint32_t fastest{};     ///< of those
  double fastest_ns{};

  bool has_band() const { return low_ns != high_ns; }
};

/// In the order of the file, then of the instances.
std::vector<PredictedRegion> predicted_regions(const Timeline& timeline);

/// What stands in place of the table where a program that ended marks no region.
std::string without_regions_text(const Timeline& timeline);

/// A table; empty where there is no region.
std::string regions_text(const std::vector<PredictedRegion>& regions);
std::string regions_csv(const std::vector<PredictedRegion>& regions);
nlohmann::ordered_json regions_json(const std::vector<PredictedRegion>& regions);

}  // namespace foretrace
