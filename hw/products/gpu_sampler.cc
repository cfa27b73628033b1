#include "hw/products/gpu_sampler.h"

#include <dlfcn.h>

#include <cstdint>

#include "reports/timeline/statistics.h"

namespace foretrace::hw {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds{3};
constexpr int kNvmlClockSm = 1;          // NVML_CLOCK_SM
constexpr unsigned kPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT: not the average over 1 s
constexpr int kValueIsUnsignedInt = 1;   // NVML_VALUE_TYPE_UNSIGNED_INT

/// nvmlFieldValue_t of nvml.h, which not every CUDA installation has.
struct FieldValue {
  unsigned field{};
  unsigned scope{};
  long long timestamp_us{};
  long long latency_us{};
  int value_type{};
  int result{};
  union {
    double as_double;
    unsigned as_unsigned;
    unsigned long long as_unsigned_long_long{};
  } value;
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace

GpuSampler::GpuSampler(const std::string& pci_bus_id)
    : library_{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)} {
  if (library_ == nullptr) return;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library_, "nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(const char*, void**)>(
      dlsym(library_, "nvmlDeviceGetHandleByPciBusId_v2"));
  if (init == nullptr || find == nullptr || init() != 0) return;
  if (find(pci_bus_id.c_str(), &device_) != 0) {
    device_ = nullptr;
    return;
  }
  clock_ = dlsym(library_, "nvmlDeviceGetClockInfo");
  fields_ = dlsym(library_, "nvmlDeviceGetFieldValues");
  power_ = dlsym(library_, "nvmlDeviceGetPowerUsage");
  limits_ = dlsym(library_, "nvmlDeviceGetCurrentClocksEventReasons");
  if (limits_ == nullptr) limits_ = dlsym(library_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  thread_ = std::thread{[this] { sample_until_stopped(); }};
}

GpuSampler::~GpuSampler() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
  if (library_ != nullptr) dlclose(library_);
}

void GpuSampler::restart() {
  const std::scoped_lock lock{mutex_};
  readings_.clear();
}

GpuSample GpuSampler::between(Clock::time_point from, Clock::time_point to) const {
  std::vector<double> clocks;
  std::vector<double> powers;
  GpuSample result;
  const std::scoped_lock lock{mutex_};
  for (const Reading& reading : readings_) {
    if (reading.at < from || reading.at > to) continue;
    if (reading.sample.sm_clock_mhz) clocks.push_back(*reading.sample.sm_clock_mhz);
    if (reading.sample.power_w) powers.push_back(*reading.sample.power_w);
    if (reading.sample.limits) result.limits = reading.sample.limits;
  }
  if (!clocks.empty()) result.sm_clock_mhz = median(clocks);
  if (!powers.empty()) result.power_w = median(powers);
  return result;
}

void GpuSampler::sample_until_stopped() {
  while (!stopped_) {
    Reading reading{Clock::now(), read()};
    {
      const std::scoped_lock lock{mutex_};
      readings_.push_back(reading);
    }
    std::this_thread::sleep_for(kPeriod);
  }
}

GpuSample GpuSampler::read() const {
  GpuSample sample;
  unsigned mhz = 0;
  const auto clock = reinterpret_cast<int (*)(void*, int, unsigned*)>(clock_);
  if (clock != nullptr && clock(device_, kNvmlClockSm, &mhz) == 0) sample.sm_clock_mhz = mhz;
  FieldValue instant;
  instant.field = kPowerInstant;
  const auto fields = reinterpret_cast<int (*)(void*, int, FieldValue*)>(fields_);
  const auto power = reinterpret_cast<int (*)(void*, unsigned*)>(power_);
  unsigned mw = 0;
  if (fields != nullptr && fields(device_, 1, &instant) == 0 && instant.result == 0 &&
      instant.value_type == kValueIsUnsignedInt) {
    sample.power_w = instant.value.as_unsigned * 1e-3;
  } else if (power != nullptr && power(device_, &mw) == 0) {
    sample.power_w = mw * 1e-3;
  }
  unsigned long long mask = 0;
  const auto limits = reinterpret_cast<int (*)(void*, unsigned long long*)>(limits_);
  if (limits != nullptr && limits(device_, &mask) == 0) sample.limits = mask;
  return sample;
}

}  // namespace foretrace::hw
