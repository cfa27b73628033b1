// The program of a run that was read: what simulate wrote, other commands find again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "reports/compare/run_files.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"

namespace foretrace {

struct RunProgram {
  Program program;
  Simulated simulated = Simulated::All;
  std::optional<ExpandedScenario> training;  ///< where it is a training step: all of it
  std::int64_t left = 0;                     ///< its micro-batches that were not simulated
};

/// Of `scenario`, or where it is empty of the file that the timeline names. A training step may
/// have been simulated with one rank of each kind, with some of its micro-batches, or on other
/// nodes: the timeline's hash says which. Throws UsageError where none of these has its hash.
RunProgram program_of_run(const LoadedTimeline& run, const std::filesystem::path& scenario,
                          const ParameterValues& parameters);

}  // namespace foretrace
