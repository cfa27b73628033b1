// What is known of one scenario: its expectations judged on a prediction and on the measurement
// that lies beside it, and its regions' times on both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/judge/expectations.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// One origin's side of a scenario.
struct JudgedSide {
  enum class State : std::uint8_t {
    Missing,  ///< not measured, or this machine model cannot run it
    Stale,    ///< measured with another version of the program
    Judged
  };
  State state = State::Missing;
  std::vector<Held> held;  ///< one per expectation, when judged

  bool broken() const;
  /// "holds", "BROKEN", "undecided", "stale", "states nothing", or "-" for what is not there.
  std::string word() const;
};

struct ScenarioResult {
  Program program;
  JudgedSide predicted, measured;
  std::vector<RegionRow> regions;  ///< with both figures; none unless measured and judged
};

}  // namespace foretrace
