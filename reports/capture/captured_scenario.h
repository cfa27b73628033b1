// One captured iteration as a scenario: what each process called and when, what ran for how long,
// collectives by their sizes. What a trace does not say is guessed, and each guess is listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// What the simulator will take for the calls that the scenario makes, in nanoseconds: so much less
/// is written between them, and the captured pace is kept.
struct CallTimes {
  std::int64_t launch = 0, collective = 0, event_record = 0, stream_wait = 0, synchronize = 0;
  /// What it adds to a kernel's duration, and leaves between two of a stream.
  std::int64_t spin_overhead = 0, kernel_gap = 0;
};

struct ScenarioOptions {
  std::string name = "captured";
  std::optional<std::size_t> iteration;  ///< the last one unless given
  std::int64_t processes = 0;            ///< 0: as many as were captured
  CallTimes calls;
  std::uint32_t sms = 128;  ///< of the GPU, where the trace does not say
};

struct CapturedScenario {
  std::string text;
  std::int64_t captured_ns = 0;      ///< the iteration, slowest process
  std::vector<std::string> guesses;  ///< "12 copies are kernels of the captured time"
  std::vector<std::string> notes;    ///< what the captured iteration was
};

/// Throws UsageError when there is no such iteration, when groups of a part of the processes would
/// have to grow, or when several processes were captured but not all of a group.
CapturedScenario scenario_of(const Capture& capture, const ScenarioOptions& options);

}  // namespace foretrace::capture
