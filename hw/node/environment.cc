#include "hw/node/environment.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <fmt/format.h>
#include <nccl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "hw/node/nvml.h"
#include "reports/timeline/environments.h"

extern char** environ;

namespace foretrace::hw {
namespace {

using Json = nlohmann::json;

/// 13000 -> "13.0", as CUDA counts.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return count;
}

/// The value of a line "key : value" of a file such as /proc/cpuinfo.
std::string first_value(const char* file, const std::string& key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string first_line(const char* file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

template <class T>
void set_if_known(Json& into, const char* key, const std::optional<T>& value) {
  if (value) into[key] = *value;
}

Json describe_gpu(int ordinal, const Nvml& nvml) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) return Json::object();
  std::array<char, 32> bus_id{};
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal) !=
      cudaSuccess) {
    return Json::object();
  }
  Json gpu = {{"name", properties.name},
              {"ordinal", ordinal},
              {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
              {"sm_count", properties.multiProcessorCount},
              {"memory_bytes", properties.totalGlobalMem},
              {"l2_bytes", properties.l2CacheSize},
              {"copy_engines", properties.asyncEngineCount},
              {"shared_bytes_per_block", properties.sharedMemPerBlockOptin}};
  const GpuState state = nvml.state(bus_id.data());
  set_if_known(gpu, "sm_clock_mhz", state.sm_clock_mhz);
  set_if_known(gpu, "sm_clock_max_mhz", state.sm_clock_max_mhz);
  set_if_known(gpu, "memory_clock_mhz", state.memory_clock_mhz);
  set_if_known(gpu, "temperature_celsius", state.temperature_celsius);
  set_if_known(gpu, "nvlinks", state.nvlinks);
  if (state.throttle_reasons) {
    gpu["throttle_reasons"] = throttle_reason_names(*state.throttle_reasons);
  }
  return gpu;
}

/// Pairs of GPUs: direct access, and the driver's ranking of the path (lower is faster).
Json describe_links(int count) {
  Json links = Json::array();
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      int access = 0;
      int rank = 0;
      static_cast<void>(cudaDeviceCanAccessPeer(&access, from, to));
      static_cast<void>(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from, to));
      links.push_back(
          {{"from", from}, {"to", to}, {"peer_access", access == 1}, {"performance_rank", rank}});
    }
  }
  return links;
}

/// Cores this process may run on: mpirun binds it to one unless told otherwise.
int cores_allowed() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

Json describe_host() {
  utsname system{};
  uname(&system);
  const std::string release = system.release;  // what follows the number names a build
  return {{"cpu", first_value("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"cores_allowed", cores_allowed()},
          {"memory", first_value("/proc/meminfo", "MemTotal")},
          {"kernel", fmt::format("{} {}", system.sysname,
                                 release.substr(0, release.find_first_not_of("0123456789.")))},
          {"transparent_hugepages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")}};
}

}  // namespace

std::map<std::string, std::string> software_versions() {
  std::map<std::string, std::string> versions;
  int number = 0;
  if (cudaRuntimeGetVersion(&number) == cudaSuccess) versions["cuda"] = cuda_version(number);
  const std::string driver = Nvml{}.driver_version();
  if (!driver.empty()) versions["driver"] = driver;
  if (ncclGetVersion(&number) == ncclSuccess) {
    versions["nccl"] = fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
  }
  std::array<int, 3> cublas{};
  if (cublasGetProperty(MAJOR_VERSION, &cublas[0]) == CUBLAS_STATUS_SUCCESS &&
      cublasGetProperty(MINOR_VERSION, &cublas[1]) == CUBLAS_STATUS_SUCCESS &&
      cublasGetProperty(PATCH_LEVEL, &cublas[2]) == CUBLAS_STATUS_SUCCESS) {
    versions["cublas"] = fmt::format("{}.{}.{}", cublas[0], cublas[1], cublas[2]);
  }
  std::uint32_t cupti = 0;
  if (cuptiGetVersion(&cupti) == CUPTI_SUCCESS) versions["cupti"] = std::to_string(cupti);
  return versions;
}

std::string gpu_names(int first_ordinal, int count) {
  std::set<std::string> names;
  for (int ordinal = first_ordinal; ordinal < first_ordinal + count; ++ordinal) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
      names.insert(properties.name);
    }
  }
  return fmt::format("{}", fmt::join(names, " + "));
}

nlohmann::json describe_environment() {
  const Nvml nvml;
  const int count = device_count();
  Json gpus = Json::array();
  for (int ordinal = 0; ordinal < count; ++ordinal) gpus.push_back(describe_gpu(ordinal, nvml));
  return {{"software", software_versions()},
          {"gpus", gpus},
          {"links", describe_links(count)},
          {"host", describe_host()},
          {"variables", named_variables()}};
}

std::map<std::string, std::string> named_variables() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string::npos || !is_recorded_variable(text.substr(0, equals))) continue;
    result[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

}  // namespace foretrace::hw
