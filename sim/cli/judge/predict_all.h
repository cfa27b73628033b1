// Predicts many programs, one forked child each, and judges their expectations there.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/machine/machine.h"
#include "reports/judge/expectations.h"
#include "reports/timeline/timeline.h"
#include "sim/simulate.h"

namespace foretrace {

/// What came back from a child: the verdicts, and the regions in a timeline without spans.
struct Prediction {
  std::vector<Held> held;
  Timeline regions;
};

/// One for each program; empty, with the reason on stderr, where the machine cannot run it. Call
/// before any engine exists in this process.
std::vector<std::optional<Prediction>> predict_all(std::span<const Program> programs,
                                                   const Machine& machine,
                                                   Fidelity fidelity = Fidelity::Flow);

}  // namespace foretrace
