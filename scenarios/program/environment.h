// The environment variables that a scenario may set, and the values that CUDA and NCCL take for
// them. What they would refuse, or would silently replace by a value that nobody asked for, is
// wrong here: both executors read the same words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

using Environment = std::map<std::string, std::string>;

/// One variable that is wrong. The message begins with NAME=VALUE.
struct EnvironmentProblem {
  std::string name;
  std::string message;
  std::string hint;  ///< may be empty
};

const std::vector<std::string>& environment_names();

/// Why no scenario may set `name`, which is not in environment_names(): by what it means where NCCL
/// reads it, else with the name that was meant.
EnvironmentProblem unknown_variable(const std::string& name);

/// What is wrong with each, by name; names that are not in environment_names() are passed over.
std::vector<EnvironmentProblem> check_environment(const Environment& environment);

/// A whole number as strtoll(text, nullptr, 0) reads it: 64, 0x40, 0100. Empty when anything else
/// stands in `text`.
std::optional<std::int64_t> environment_number(std::string_view text);

/// CUDA_LAUNCH_BLOCKING=1: every launch of a kernel waits for its end.
bool blocks_launches(const Environment& environment);

}  // namespace foretrace
