// Where a timeline is from, on what it was measured, and how its run ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foretrace {

/// How a run ended, when it did not end well.
struct Outcome {
  enum class Kind : std::uint8_t { Completed, Deadlock, Timeout, WrongData, Failed };
  Kind kind = Kind::Completed;
  std::vector<std::string>
      explanation;  ///< "process 1, thread main, hang.yaml:14: nccl_recv waits for ..."
};

/// A GPU while it was measured; what the driver does not tell stays empty.
struct GpuState {
  std::optional<std::uint32_t> sm_clock_mhz;
  std::optional<std::uint32_t> memory_clock_mhz;
  std::optional<std::uint32_t> temperature_celsius;
  std::string throttle_reasons;  ///< NVML's names; "none"
  friend bool operator==(const GpuState&, const GpuState&) = default;
};

/// A start of the harness that samples are from.
struct ProcessStart {
  std::uint32_t start{};    ///< RegionSamples::starts
  std::string date;         ///< "2026-11-21T03:10:23Z"
  std::string label;        ///< the user's note; may be empty
  std::string environment;  ///< KEY of environments/KEY.json, see environments.h
  std::vector<GpuState> gpus;
  std::vector<std::string> environments{};  ///< of each node where there are several; else empty
  /// What the call of a kernel's launch took beside the repetitions, by process: the host's speed
  /// then. Empty where it is not known.
  std::vector<std::int64_t> launch_ns{};
  friend bool operator==(const ProcessStart&, const ProcessStart&) = default;
};

/// The mean over its processes; none where it does not say it.
std::optional<double> mean_launch_ns(const ProcessStart& start);

/// Hosts were 0.7 to 1.4 times as fast as a machine file says. Beyond these a launch tells
/// something else than the host's speed.
inline constexpr double kSlowestHost = 0.4;
inline constexpr double kFastestHost = 2.5;

struct Origin {
  bool measured = false;
  std::string program_hash;
  std::string scenario;  ///< name
  std::string file;
  std::string machine;                          ///< model name, or the GPU's name and count
  std::string producer;                         ///< "foretrace 0.1.0"
  std::map<std::string, std::string> versions;  ///< cuda, nccl, driver, simgrid, ...
  std::int64_t clock_error_bound_ns = 0;        ///< between lanes of different devices or processes
  std::vector<ProcessStart> starts;             ///< measured: those that are known
  /// Measured, in memory only: its spans were paired with a prediction's, call by call.
  bool is_joined_by_calls = false;
  std::optional<std::int64_t> launch_ns{};  ///< predicted: what the call of a launch takes
};

}  // namespace foretrace
