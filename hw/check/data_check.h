// Checks that operations move and reduce data as they should, on the real GPUs, outside of all
// timing: known patterns go in, and after every operation its result is compared.
#pragma once

#include <string>
#include <vector>

#include "hw/run/process_run.h"
#include "hw/run/processes.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

struct DataCheck {
  std::string summary;             ///< what was checked, for the result's versions block
  std::vector<std::string> wrong;  ///< the same in every process; empty: all right
};

/// Every member of `processes` calls it. Leaves the buffers as a pass finds them.
DataCheck check_data(const Program& program, const Processes& processes, ProcessRun& run);

}  // namespace foretrace::hw
