// Traffic on a machine: what the requests see, with a band.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/serving/traffic.h"
#include "sim/applications/serving/iteration_times.h"
#include "sim/applications/serving/summary.h"

namespace foretrace::serving {

struct Predicted {
  std::vector<Served> engines;  ///< those that compute prompts first, where there are such
  Summary middle;
  Summary fast, slow;             ///< were every iteration at the end of its band
  std::int64_t cache_tokens = 0;  ///< of a group of an engine; of those that go on
  bool is_limited = false;        ///< the file's `cache_tokens` decides, not the memory
};

/// Engines that differ, each as a description of its own on the machine, with whether NVLink joins
/// its GPUs: those that compute prompts, where there are such, and those that go on. Throws
/// UsageError for a layout that is not simulated there.
std::vector<Serving> kinds_of(const Serving& serving, const Machine& machine);

/// `times`: of the iterations of each kind, as its own traffic asks for them. `arrivals`: of other
/// requests with such lengths. Throws UsageError where the model leaves no room for a cache.
Predicted predict(const std::vector<Serving>& kinds, const Machine& machine,
                  const std::vector<std::vector<RegionTime>>& times,
                  const std::vector<Arrival>& arrivals);
Predicted predict(const std::vector<Serving>& kinds, const Machine& machine,
                  const std::vector<std::vector<RegionTime>>& times);

/// A line of what the answer rests on beside the machine: whose constants the engine has.
std::string engine_note(const Serving& serving);

/// A table of times, rates, the cache and the verdict.
std::string text_of(const Serving& serving, const Predicted& predicted);
std::string csv_of(const Predicted& predicted);
std::string json_of(const Serving& serving, const Predicted& predicted, const Machine& machine);

}  // namespace foretrace::serving
