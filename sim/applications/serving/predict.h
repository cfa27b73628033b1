// Traffic on a machine: what the requests see, with a band.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "sim/applications/serving/iteration_times.h"
#include "sim/applications/serving/summary.h"

namespace foretrace::serving {

struct Predicted {
  std::vector<Served> engines;
  Summary middle;
  Summary fast, slow;             ///< were every iteration at the end of its band
  std::int64_t cache_tokens = 0;  ///< of an engine
  bool is_limited = false;        ///< the file's `cache_tokens` decides, not the memory
};

/// With what its iterations take from the machine: whether NVLink joins an engine's GPUs.
Serving on_machine(Serving serving, const Machine& machine);

/// `timeline`: of the scenario's program. Throws UsageError where the model leaves no room for a
/// cache.
Predicted predict(const Serving& serving, const Machine& machine, const Timeline& timeline);

/// A line of what the answer rests on beside the machine: whose constants the engine has.
std::string engine_note(const Serving& serving);

/// A table of times, rates, the cache and the verdict.
std::string text_of(const Serving& serving, const Predicted& predicted);
std::string csv_of(const Predicted& predicted);
std::string json_of(const Serving& serving, const Predicted& predicted, const Machine& machine);

}  // namespace foretrace::serving
