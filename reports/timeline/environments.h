// Environments that measurements are from: what of a computer changes what CUDA and NCCL do, and
// nothing that names it. Each is kept once, as environments/KEY.json above the results that refer
// to it; KEY is made of its content. Clocks and temperatures differ from start to start: those are
// the process launch's (timeline.h).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Whether a variable changes what CUDA or NCCL do and its value says nothing of the computer: what
/// a scenario may set (scenarios/program/environment.h), and a few more. No addresses
/// (NCCL_COMM_ID), interfaces, files.
bool is_recorded_variable(std::string_view name);

/// Of a machine's description (describe_environment() in hw/node, or one of an earlier form) what
/// is recorded, by name; everything else is left out. "kernel" is the kernel's version without the
/// build's name.
nlohmann::json recorded_environment(const nlohmann::json& machine);

/// The same description's clocks, temperatures and throttle reasons, by GPU.
std::vector<GpuState> gpu_states(const nlohmann::json& machine);

/// "3f0c...-...": of the content.
std::string environment_key(const nlohmann::json& environment);

/// Writes DIRECTORY/environments/KEY.json unless it is there; returns KEY.
std::string store_environment(const nlohmann::json& environment,
                              const std::filesystem::path& directory);

/// environments/KEY.json in one of the four directories above `result`, a timeline's file.
std::optional<std::filesystem::path> find_environment(const std::filesystem::path& result,
                                                      const std::string& key);

}  // namespace foretrace
