// Fits a machine's parameters to measured calibration runs: the simulator itself is the model, so
// a parameter means in the fit exactly what it means in a prediction.
//
// Weighted least squares on log(predicted / measured) per region, robust against outliers, by
// Levenberg-Marquardt with a numeric Jacobian (one small change per parameter, each simulation in
// a child process).
#pragma once

#include <string>
#include <vector>

#include "models/machine.h"
#include "reports/timeline.h"
#include "scenarios/program.h"

namespace foretrace {

/// One calibration scenario and what was measured.
struct CalibrationRun {
  Program program;
  Timeline measured;
};

struct FitResidual {
  std::string scenario, region;
  double measured_ns{}, predicted_ns{};
  double spread{};  ///< relative: half of p5..p95 of the measurement
};

struct FitResult {
  Machine machine;  ///< fitted parameters with source, spread; the others as they were
  std::vector<Param> fitted;
  std::vector<Param> undetermined;  ///< no region depends on them: left as they were
  std::vector<FitResidual> residuals;
};

/// `start` gives the first guess and the parameters that are not fitted: those whose source is a
/// datasheet or a publication. `from` is recorded as the origin of the fitted ones.
FitResult fit(const std::vector<CalibrationRun>& runs, const Machine& start,
              const std::string& from);

}  // namespace foretrace
