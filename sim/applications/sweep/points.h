// The points of a sweep: every combination of the values of its axes.
#pragma once

#include <string>
#include <vector>

#include "scenarios/read/scenario.h"

namespace foretrace::sweep {

/// What varies: the machine, a parameter of the scenario (--set), a what-if (--with).
enum class Kind : std::uint8_t { Machine, Set, With };

struct Axis {
  Kind kind = Kind::Set;
  std::string name;  ///< empty for machines
  std::vector<std::string> values;
};

/// "size=8MiB..512MiB:x2", "ranks=2,4,8", "n=1..8", "n=1..9:+2". A range keeps its unit; its last
/// value is the last one within. Throws UsageError naming `flag`.
Axis parse_axis(Kind kind, const std::string& text, const std::string& flag);
/// "h200-nvswitch-8,b200-nvswitch-8".
Axis machine_axis(const std::string& text);

/// One combination. `values` has one for each axis, in their order.
struct Point {
  std::size_t number = 0;
  std::vector<std::string> values;

  std::string machine(const std::vector<Axis>& axes) const;
  ParameterValues parameters(const std::vector<Axis>& axes) const;
  std::vector<std::string> what_ifs(const std::vector<Axis>& axes) const;
};

inline constexpr std::size_t kMostValues = 50'000;  ///< of an axis
inline constexpr std::size_t kMostPoints = 1'000'000;

/// The last axis varies fastest. Throws UsageError for an axis twice, and for more than
/// kMostPoints.
std::vector<Point> points_of(const std::vector<Axis>& axes);

}  // namespace foretrace::sweep
