#include "hw/node/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace foretrace::hw {
namespace {

// nvml.h, NVML API 12 and 13: unchanged since long before.
using NvmlDevice = void*;
using NvmlReturn = int;
constexpr NvmlReturn kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
constexpr unsigned kMaxNvLinks = 18;

template <class Function, class... Arguments>
bool call(void* function, Arguments... arguments) {
  return function != nullptr && reinterpret_cast<Function>(function)(arguments...) == kSuccess;
}

}  // namespace

Nvml::Nvml() : library_{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)} {
  if (library_ == nullptr) return;
  if (!call<NvmlReturn (*)()>(symbol("nvmlInit_v2"))) {
    dlclose(std::exchange(library_, nullptr));
  }
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  call<NvmlReturn (*)()>(symbol("nvmlShutdown"));
  dlclose(library_);
}

void* Nvml::symbol(const char* name) const { return dlsym(library_, name); }

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!available() ||
      !call<NvmlReturn (*)(char*, unsigned)>(symbol("nvmlSystemGetDriverVersion"), text.data(),
                                             static_cast<unsigned>(text.size()))) {
    return "";
  }
  return text.data();
}

GpuState Nvml::state(const std::string& pci_bus_id) const {
  GpuState state;
  NvmlDevice device = nullptr;
  if (!available() ||
      !call<NvmlReturn (*)(const char*, NvmlDevice*)>(symbol("nvmlDeviceGetHandleByPciBusId_v2"),
                                                      pci_bus_id.c_str(), &device)) {
    return state;
  }
  const auto read_clock = [&](const char* function, int clock) -> std::optional<unsigned> {
    unsigned mhz = 0;
    if (!call<NvmlReturn (*)(NvmlDevice, int, unsigned*)>(symbol(function), device, clock, &mhz)) {
      return std::nullopt;
    }
    return mhz;
  };
  state.sm_clock_mhz = read_clock("nvmlDeviceGetClockInfo", kClockSm);
  state.memory_clock_mhz = read_clock("nvmlDeviceGetClockInfo", kClockMemory);
  state.sm_clock_max_mhz = read_clock("nvmlDeviceGetMaxClockInfo", kClockSm);
  state.temperature_celsius = read_clock("nvmlDeviceGetTemperature", kTemperatureGpu);
  unsigned long long reasons = 0;
  if (call<NvmlReturn (*)(NvmlDevice, unsigned long long*)>(
          symbol("nvmlDeviceGetCurrentClocksThrottleReasons"), device, &reasons)) {
    state.throttle_reasons = reasons;
  }
  unsigned active = 0;
  for (unsigned link = 0; link < kMaxNvLinks; ++link) {
    int enabled = 0;
    if (call<NvmlReturn (*)(NvmlDevice, unsigned, int*)>(symbol("nvmlDeviceGetNvLinkState"), device,
                                                         link, &enabled) &&
        enabled == 1) {
      ++active;
    }
  }
  state.nvlinks = active;
  return state;
}

std::string throttle_reason_names(std::uint64_t reasons) {
  // nvmlClocksThrottleReason*, nvml.h.
  constexpr std::array<std::pair<std::uint64_t, const char*>, 9> kNames{{
      {0x1, "gpu_idle"},
      {0x2, "applications_clocks_setting"},
      {0x4, "sw_power_cap"},
      {0x8, "hw_slowdown"},
      {0x10, "sync_boost"},
      {0x20, "sw_thermal_slowdown"},
      {0x40, "hw_thermal_slowdown"},
      {0x80, "hw_power_brake_slowdown"},
      {0x100, "display_clock_setting"},
  }};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace foretrace::hw
