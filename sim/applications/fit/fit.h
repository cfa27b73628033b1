// Fits a machine's parameters to measured runs: the simulator itself is the model, so a parameter
// means in the fit exactly what it means in a prediction.
//
// Weighted least squares on log(predicted / measured) per region, robust against outliers (Huber),
// by Levenberg-Marquardt. The Jacobian is numeric (one small change per parameter, each simulation
// in a child process), but only where it is not zero: which runs a parameter touches is found once.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/fit/data.h"

namespace foretrace {

/// A parameter that the data do not determine: left as it was in the machine to start from.
struct Refused {
  Param param;
  std::string reason;
};

/// Two parameters that the data hardly tell apart.
struct Correlated {
  Param one, other;
  double correlation;
};

struct FitResult {
  Machine machine;            ///< fitted parameters with source and spread; the others as they were
  std::vector<Param> fitted;  ///< in the catalogue's order
  std::vector<Refused> refused;
  std::vector<Correlated> correlated;  ///< |correlation| > 0.95, strongest first
  std::vector<double> predicted_ns;    ///< for each target of the data; NaN for none
  std::size_t simulations = 0;
};

/// What the sources of the fitted parameters say beside what these learned from.
struct FitWords {
  std::string text = "calibration";
  std::string command = "foretrace fit";  ///< the command line of this fit
};

/// `start` gives the first guess and the parameters that are not fitted: those whose source is a
/// datasheet's or a publication's own figure, counts, and those whose key begins with none of
/// `only` (empty: any may be fitted). Each fitted parameter's source says which scenarios, numbers
/// of GPUs and sizes have an influence on it.
/// Progress goes to stderr. Call before any engine exists in this process.
FitResult fit(const FitData& data, const Machine& start, const FitWords& words,
              const std::vector<std::string>& only = {});

/// No fit: how good `machine` is on the data.
FitResult judge(const FitData& data, const Machine& machine);

}  // namespace foretrace
