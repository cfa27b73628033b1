// A scenario in the place of its prediction: simulated when it is asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"

namespace foretrace {

/// What an argument of compare and report holds: timelines (load_run), or a scenario (.yaml) or a
/// capture's directory (step.yaml and no prediction), which is simulated on `machine` with
/// what-ifs, as `foretrace simulate` does. Prints what the prediction rests on. Throws UsageError
/// where nothing can be read, and where the machine cannot run the scenario.
Run run_of(const std::filesystem::path& path, const std::string& machine,
           const std::vector<std::string>& with = {});

}  // namespace foretrace
