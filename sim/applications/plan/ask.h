// What a search wants simulated: in forked children, with few layers where that is enough.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/applications/explain/repair.h"
#include "sim/applications/plan/fold.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace::plan {

struct Wanted {
  Question question;
  Layout layout;
  std::int64_t passes = 0;            ///< at most so many micro-batches
  std::optional<Clock> folds;         ///< empty: all layers
  std::vector<std::string> what_ifs;  ///< beside the question's
  std::optional<explain::Cause> without;
  Says says = Says::Everything;
};

/// What the answers cost, whatever the machine is that they were computed on.
struct Work {
  std::size_t simulations = 0;
  std::size_t spans = 0;  ///< of all of them: calls of the host, kernels, transfers
};

/// Why `simulated` has no answer for a layout, in words.
std::string why_not_simulated(const Wanted& wanted);

/// In the order of `wanted`; empty where a layout cannot run, has no such cause, or `go_on` stopped
/// before it (engine/children.h).
std::vector<std::optional<Prediction>> simulated(const std::vector<Wanted>& wanted, Work& work,
                                                 const GoOn& go_on);

}  // namespace foretrace::plan
