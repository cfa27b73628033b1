// foretrace explain and foretrace report --explain: why a run that was read takes as long as it
// does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/explain/explain.h"

namespace foretrace {

struct ExplainedWith {
  std::filesystem::path scenario;  ///< empty: the one that the timeline names
  std::string machine;             ///< empty: that of the prediction
  std::vector<std::string> with;
  ParameterValues parameters;
};

/// The program of `run`, on the machine that `predicted` was made with. Throws UsageError where
/// neither is known.
explain::Explanation explained(const LoadedTimeline& run, const LoadedTimeline& predicted,
                               const ExplainedWith& with);

}  // namespace foretrace
