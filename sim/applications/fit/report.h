// What a fit prints: every residual, and how good it is by class, what was in the fit apart from
// what was not.
#pragma once

#include <string>

#include "sim/applications/fit/fit.h"
#include "sim/applications/fit/predict.h"
#include "sim/applications/fit/sources.h"

namespace foretrace {

/// One row for each region. `csv`: as CSV instead of Markdown.
std::string residual_table(const FitData& data, const std::vector<TargetClass>& classes,
                           const FitResult& result, bool csv);

/// Per class: regions, mean, 95th percentile and worst |error| of those in the fit, and of those
/// that judge it. Below, NCCL as a whole: by launch, and numbers of GPUs that were held out apart.
std::string class_summary(const FitData& data, const std::vector<TargetClass>& classes,
                          const FitResult& result);

/// Value before and after, and spread, of each fitted parameter.
std::string parameter_table(const FitResult& result, const Machine& start);

/// What was refused, why, and what would determine it; pairs that are hardly told apart.
std::string refusal_text(const FitResult& result, const DeterminedBy& determined);

}  // namespace foretrace
