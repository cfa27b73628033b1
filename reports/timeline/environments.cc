#include "reports/timeline/environments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "reports/timeline/write_file.h"
#include "scenarios/base/text/made_from.h"
#include "scenarios/program/environment.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kDirectory = "environments";

// Of what scenarios may set: addresses, and names of computers and of their cards.
constexpr std::array<std::string_view, 5> kNamesOfComputers{
    "NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_IB_HCA", "NCCL_OOB_NET_IFNAME", "NCCL_SOCKET_IFNAME"};
// Beside what scenarios may set. CUDA_VISIBLE_DEVICES is not among them: the GPUs that are listed
// are those that it leaves, and it may hold their serial numbers.
constexpr std::array<std::string_view, 11> kMoreVariables{
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_DEVICE_ORDER",   "CUDA_DISABLE_PTX_JIT",
    "NCCL_DMABUF_ENABLE",      "NCCL_IB_DISABLE",     "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_MNNVL_ENABLE",       "NCCL_NET_GDR_READ",   "NCCL_NSOCKS_PERTHREAD",
    "NCCL_SOCKET_NTHREADS",    "NVIDIA_TF32_OVERRIDE"};

Json picked(const Json& from, std::initializer_list<const char*> keys) {
  Json into = Json::object();
  for (const char* key : keys) {
    if (from.is_object() && from.contains(key)) into[key] = from.at(key);
  }
  return into;
}

Json picked_each(const Json& from, std::initializer_list<const char*> keys) {
  Json into = Json::array();
  for (const Json& one : from) into.push_back(picked(one, keys));
  return into;
}

/// "Linux 6.8.0-31-generic" as "Linux 6.8.0".
std::string kernel_version(const std::string& text) {
  const auto digit = text.find_first_of("0123456789");
  if (digit == std::string::npos) return {};
  return text.substr(0, text.find_first_not_of("0123456789.", digit));
}

/// All values of the variables above are numbers and words.
bool is_plain(const std::string& value) {
  return value.size() <= 128 && std::ranges::all_of(value, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  std::string_view{"_,;:^=+-."}.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool is_recorded_variable(std::string_view name) {
  if (std::ranges::find(kNamesOfComputers, name) != kNamesOfComputers.end()) return false;
  return std::ranges::find(kMoreVariables, name) != kMoreVariables.end() ||
         std::ranges::find(environment_names(), name) != environment_names().end();
}

Json recorded_environment(const Json& machine) {
  Json environment = {
      {"schema_version", 1},
      {"software", picked(machine.value("software", Json::object()),
                          {"cublas", "cuda", "cupti", "driver", "nccl"})},
      {"gpus",
       picked_each(machine.value("gpus", Json::array()),
                   {"name", "ordinal", "compute_capability", "sm_count", "memory_bytes", "l2_bytes",
                    "copy_engines", "shared_bytes_per_block", "sm_clock_max_mhz", "nvlinks"})},
      {"links", picked_each(machine.value("links", Json::array()),
                            {"from", "to", "peer_access", "performance_rank"})},
      {"host", picked(machine.value("host", Json::object()),
                      {"cpu", "cores", "cores_allowed", "memory", "transparent_hugepages"})},
      {"variables", Json::object()}};
  const std::string kernel =
      kernel_version(machine.value("host", Json::object()).value("kernel", ""));
  if (!kernel.empty()) environment["host"]["kernel"] = kernel;
  const Json variables = machine.value("variables", Json::object());
  for (const auto& [name, value] : variables.items()) {
    if (!is_recorded_variable(name) || !value.is_string()) continue;
    if (is_plain(value.get<std::string>())) environment["variables"][name] = value;
  }
  return environment;
}

std::vector<GpuState> gpu_states(const Json& machine) {
  std::vector<GpuState> states;
  const auto known = [](const Json& gpu, const char* key) -> std::optional<std::uint32_t> {
    if (!gpu.contains(key)) return std::nullopt;
    const Json& value = gpu.at(key);
    if (!value.is_number_unsigned() || value > std::numeric_limits<std::uint32_t>::max()) {
      return std::nullopt;
    }
    return value.get<std::uint32_t>();
  };
  for (const Json& gpu : machine.value("gpus", Json::array())) {
    states.push_back({known(gpu, "sm_clock_mhz"), known(gpu, "memory_clock_mhz"),
                      known(gpu, "temperature_celsius"), gpu.value("throttle_reasons", "")});
  }
  return states;
}

std::string environment_key(const Json& environment) { return digest_of(environment.dump()); }

std::string store_environment(const Json& environment, const fs::path& directory) {
  std::string key = environment_key(environment);
  const fs::path file = directory / kDirectory / (key + ".json");
  if (!fs::exists(file)) {
    make_directory(file.parent_path());
    write_file(file, environment.dump(1) + "\n");
  }
  return key;
}

std::optional<fs::path> find_environment(const fs::path& result, const std::string& key) {
  // A timeline may say anything: its key is no path.
  if (key.find_first_not_of("0123456789abcdef-") != std::string::npos) return std::nullopt;
  fs::path above = fs::absolute(result);
  for (int level = 0; level < 4; ++level) {
    above = above.parent_path();
    fs::path file = above / kDirectory / (key + ".json");
    if (!key.empty() && fs::is_regular_file(file)) return file;
  }
  return std::nullopt;
}

}  // namespace foretrace
