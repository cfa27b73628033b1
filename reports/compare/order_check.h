// Holds a timeline against the order that its program guarantees
// (scenarios/check/happens_before.h): what must have ended before a kernel or copy begins, and that
// one stream's work never overlaps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/check/happens_before.h"

namespace foretrace {

/// `later` began before `earlier` had ended, by so much.
struct OrderViolation {
  const Op* earlier{};
  const Op* later{};
  std::uint64_t earlier_instance{}, later_instance{};
  std::uint32_t process{};  ///< of the later one
  std::int64_t by_ns{};
  bool is_overlap = false;  ///< two of one stream, in whatever order
};

struct OrderCheck {
  std::size_t spans = 0;       ///< kernels and copies with a place in the order
  std::size_t held = 0;        ///< (earlier, later) in order
  std::size_t undecided = 0;   ///< closer than the clocks of two GPUs agree
  std::size_t neighbours = 0;  ///< consecutive on one stream: none overlaps
  std::vector<OrderViolation> violations;
  bool is_complete = true;  ///< false: the program is longer than what was walked
};

/// Each kernel and copy is held against the last one of every stream that must have ended before
/// it begins. `order` is of the program that made `timeline`.
OrderCheck check_order(const Program& program, const HappensBefore& order,
                       const Timeline& timeline);

/// "line 12 (spin, process 0) begins 1.2 us before line 9 (memcpy_async) has ended".
std::string describe(const OrderViolation& violation);

}  // namespace foretrace
