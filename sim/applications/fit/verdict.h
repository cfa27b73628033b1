// A fit in ten lines: what was learned, how well it predicts what it was not shown, what to measure
// next.
#pragma once

#include <string>
#include <vector>

#include "sim/applications/fit/fit.h"
#include "sim/applications/fit/predict.h"
#include "sim/applications/fit/sources.h"

namespace foretrace {

/// At most ten lines. What the tables of report.h have in full.
std::string verdict(const FitData& data, const std::vector<TargetClass>& classes,
                    const FitResult& result, const DeterminedBy& determined);

}  // namespace foretrace
