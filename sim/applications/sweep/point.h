// One point of a sweep, predicted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/simulate.h"
#include "sim/applications/sweep/points.h"

namespace foretrace::sweep {

struct Sweep {
  std::string file;  ///< the scenario's
  std::string text;  ///< what it holds
  std::vector<Axis> axes;
  Fidelity fidelity = Fidelity::Flow;
};

/// The row of a point before it is predicted: its number and the values of its axes.
nlohmann::ordered_json row_of(const Sweep& sweep, const Point& point);

/// The row with what was predicted: the whole time, and each region's, the longest process'. A
/// point that cannot be predicted has its reason in `error`. Runs an engine: call in a child.
nlohmann::ordered_json predict(const Sweep& sweep, const Point& point);

}  // namespace foretrace::sweep
