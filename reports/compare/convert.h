// Measurements as the harness wrote them before: environment.json beside each timeline, with a
// whole machine for every process launch and every NCCL_* variable, and scenarios by the path that
// was typed. Nothing else reads that form.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Whether environment.json stands beside `result`, a timeline's file.
bool has_old_environment(const std::filesystem::path& result);

/// Gives `timeline`, read from `result`, the process launches of environment.json beside it, and
/// returns their environments, which are to be stored (store_environment); none when there is no
/// such file or the starts are known. Writes nothing. Throws UsageError when the file is not what
/// the harness wrote.
std::vector<nlohmann::json> take_old_environment(Timeline& timeline,
                                                 const std::filesystem::path& result);

/// What environment.json says of the starts, and their environments. Throws UsageError naming the
/// file `name`.
struct OldStarts {
  std::vector<ProcessStart> starts;
  std::vector<nlohmann::json> environments;
};
OldStarts parse_old_environment(const std::string& text, const std::string& name);

/// Brings what is measured below `root` into today's form, where it stands: environments go to
/// ROOT/environments, environment.json files go away, scenarios are named as in the repository.
/// Returns the timelines that changed; a second time none.
std::vector<std::filesystem::path> convert_runs(const std::filesystem::path& root);

}  // namespace foretrace
