// Published training steps against the prediction (foretrace training-table FILE.csv).
#pragma once

#include <string>
#include <vector>

#include "sim/cli/options.h"

namespace foretrace {

/// "median 3.1 %, 90th percentile 9.0 %, bias -0.4 %, 24 steps" of relative errors.
std::string summary_of(const std::vector<double>& errors);

/// What is said where the file, or its part that `only` leaves, has no step.
std::string no_steps(const std::string& file, const std::string& only);

/// Prints or writes a line for each published step whose name has `only`, then the errors of each
/// source beside those of the yardstick, then what is not predicted and why. Returns the exit code.
int run_published_table(const std::string& file, const std::string& only,
                        const OutputOptions& output);

}  // namespace foretrace
