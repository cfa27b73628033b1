// The scenario behind a timeline: found from the timeline's own words, and the very same program.
#pragma once

#include <filesystem>

#include "reports/compare/run_files.h"
#include "scenarios/read/scenario.h"

namespace foretrace {

/// The file that the timeline names: from here, beside the timeline, or in one of the three
/// directories above it. Throws UsageError when it is in none.
std::filesystem::path find_scenario(const LoadedTimeline& loaded);

/// Throws UsageError when the timeline is of another program than `program`.
void check_same_program(const Program& program, const LoadedTimeline& loaded);

}  // namespace foretrace
