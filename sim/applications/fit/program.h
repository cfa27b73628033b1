// The program behind a measurement, parameters included.
#pragma once

#include <optional>

#include "reports/compare/run_files.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// The very program that was measured, by its hash: from the file that the timeline names, here or
/// in foretrace's own directory, else from the scenario beside the timeline; with the parameters
/// that the measurement notes. Empty when no file gives that program.
std::optional<Program> program_of(const LoadedTimeline& measured);

}  // namespace foretrace
