// What the driver's management library says about a GPU: read only, loaded when it is there.
// NVML's header is not part of every CUDA installation; the few functions used are declared here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foretrace::hw {

struct GpuState {
  std::optional<unsigned> sm_clock_mhz;
  std::optional<unsigned> sm_clock_max_mhz;
  std::optional<unsigned> memory_clock_mhz;
  std::optional<unsigned> temperature_celsius;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bit mask; 1: idle, others slow it down
  std::optional<unsigned> nvlinks;                ///< active ones
};

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool available() const { return library_ != nullptr; }
  std::string driver_version() const;  ///< empty when not available
  GpuState state(const std::string& pci_bus_id) const;

 private:
  void* symbol(const char* name) const;

  void* library_ = nullptr;
};

/// The names of the bits that are set, by NVML's documentation: "sw_power_cap, hw_slowdown".
std::string throttle_reason_names(std::uint64_t reasons);

}  // namespace foretrace::hw
