// How points of a sweep compare: the ratio of two predicted times, and how far it may be off.
//
// Both are off by what is not known of the machine, and of one machine that is the same: half of
// a link's bandwidth is half of it whatever the bandwidth is. So a ratio is off by the difference
// of the shares that each parameter has in the two times, times the parameter's spread, in
// quadrature. Of what a band holds besides (small shares, what no parameter explains) all is
// common where only the machine changed by a what-if, half where the program's parameters differ
// (hw/laboratory/blind/pairs.py). Two machines share nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/applications/sweep/points.h"

namespace foretrace::sweep {

/// Which point each one is compared with: the first; or the one that has these values, and else
/// its own.
class Against {
 public:
  /// "nvlink=1x", "machine=h200-nvswitch-8". Throws UsageError for what no axis has.
  Against(const std::vector<Axis>& axes, const std::vector<std::string>& texts);
  std::size_t of(std::size_t point) const;

 private:
  struct Kept {
    std::size_t stride = 1, values = 1, value = 0;
  };
  std::vector<Kept> kept_;
};

/// What two points have in common.
enum class Kinship : std::uint8_t {
  Program,  ///< the same program on the same machine, changed by what-ifs
  Machine,  ///< another program
  None
};

/// Two regions' rows (point.h): how far their ratio may be off, relative; at most as far as if
/// they shared nothing.
double paired_off(const nlohmann::ordered_json& region, const nlohmann::ordered_json& other,
                  Kinship kinship);

/// Adds to each of `rows`, which are all of the sweep in the points' order, the number of the point
/// it is compared with as `against`, and to its regions `ratio`, `ratio_low` and `ratio_high`.
void compare(std::vector<nlohmann::ordered_json>& rows, const Against& against);

}  // namespace foretrace::sweep
