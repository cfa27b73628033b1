// The machine a measurement is from: what a reader needs to judge it, and nothing private (no host
// name, named environment variables only).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace foretrace::hw {

/// Origin::versions: driver, cuda, nccl, cublas, cupti.
std::map<std::string, std::string> software_versions();

/// "NVIDIA H200"; devices of several kinds are joined with " + ".
std::string gpu_names(int first_ordinal, int count);

/// Software, GPUs with clocks and throttle reasons, links between them, CPU and kernel, and
/// named_variables(). Results keep what recorded_environment() and gpu_states() take of it
/// (reports/timeline/environments.h).
nlohmann::json describe_environment();

/// The variables of this process that change what NCCL and CUDA do: is_recorded_variable().
std::map<std::string, std::string> named_variables();

}  // namespace foretrace::hw
