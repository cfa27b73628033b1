// Reads a GPU's clock and power every few milliseconds, on a thread of its own, while it works.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hw/products/product_table.h"

namespace foretrace::hw {

class GpuSampler {
 public:
  using Clock = std::chrono::steady_clock;

  /// Reads nothing, and says so in every answer, when NVML is missing.
  explicit GpuSampler(const std::string& pci_bus_id);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  /// Forgets what was read so far.
  void restart();
  /// Medians of what was read in [from, to], and the latest of its limits.
  GpuSample between(Clock::time_point from, Clock::time_point to) const;

 private:
  struct Reading {
    Clock::time_point at;
    GpuSample sample;
  };
  void sample_until_stopped();
  GpuSample read() const;

  void* library_{};
  void* device_{};
  void* clock_{};
  void* fields_{};
  void* power_{};
  void* limits_{};
  mutable std::mutex mutex_;
  std::vector<Reading> readings_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace foretrace::hw
