// When an iteration begins and ends: the profiler marks the host's part of it, the GPU runs behind.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reports/capture/capture.h"

namespace foretrace::capture {

/// Which call started what.
class Started {
 public:
  explicit Started(const Process& process);

  /// What a call started, by begin; empty for one that started nothing.
  const std::vector<const Event*>& by(const Event& call) const;
  /// Work whose call is not in the trace, by begin.
  const std::vector<const Event*>& orphans() const { return orphans_; }
  /// Of the work whose call is known; where there is none, before all times.
  std::int64_t first_begin() const;

 private:
  std::unordered_map<const Event*, std::vector<const Event*>> work_;
  std::vector<const Event*> orphans_;
  std::int64_t first_begin_ = std::numeric_limits<std::int64_t>::max();
};

/// Work that begins before the call that started it, by more than two clocks differ: their times do
/// not say what waited for what.
struct Early {
  std::size_t works = 0;
  std::int64_t most = 0;  ///< ns, of the earliest
};
Early early_work(const Process& process, const Started& started);

/// One iteration.
struct Step {
  /// The host's part: from its mark to the next one's, so that what it does before its first and
  /// behind its last call belongs to it. The last ends with its own mark.
  Window host;
  /// From when the work of earlier steps has left the GPU (or the host begins, if that is later) to
  /// when its own has and the host is done: steps that follow each other end so far apart.
  Window whole;
  std::int64_t backlog = 0;  ///< so long earlier steps' work ran on after the host's beginning
  std::size_t works = 0;     ///< kernels, copies and fills of its own
  std::int64_t beside = 0;   ///< of its own work, so much ran before whole.begin, beside theirs
};

/// The profiler's iterations, or all that was captured where it marks none; at least one.
std::vector<Step> steps_of(const Process& process, const Started& started);

/// Number `iteration`, or the last that has any work. Throws UsageError when there is no such one.
Step step_of(const std::vector<Step>& steps, const Process& process,
             std::optional<std::size_t> iteration);

}  // namespace foretrace::capture
