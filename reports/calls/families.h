// What a step's operations took on either side, summed by the operation of PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Times are on the GPU, summed over executions and processes.
struct FamilyRow {
  std::string family;             ///< "mul", "mm", "copy h2d", "all_gather"
  std::size_t first{}, second{};  ///< executions
  std::size_t joined{};           ///< of them with a partner
  double first_ns{}, second_ns{};
  std::optional<double> error;                       ///< of the sums
  std::vector<std::string> only_first, only_second;  ///< what has no partner: "name (times)"
};

/// The longest first. Both sides list the same operations (join_calls).
std::vector<FamilyRow> families_of(const Timeline& first, const Timeline& second);

/// Time in which anything ran on a GPU, the mean over processes; ns.
double busy_ns(const Timeline& timeline);

}  // namespace foretrace
