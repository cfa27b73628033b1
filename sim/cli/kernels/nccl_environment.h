// --env of the commands that ask what NCCL chooses.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace foretrace {

/// NAME=VALUE each. NCCL passes over names it does not know; a user who gives one here has mistyped
/// it. What NCCL knows and its choice does not follow is said. Throws UsageError.
std::map<std::string, std::string> nccl_environment(const std::vector<std::string>& entries);

}  // namespace foretrace
