// What `foretrace simulate` prints of a prediction: regions, and what a step is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "models/what_if/known_host.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/options.h"
#include "sim/applications/training/usage.h"

namespace foretrace {

/// What is said of a training step beside its regions.
struct SimulatedStep {
  const std::optional<ExpandedScenario>& training;  ///< none: the scenario is no step
  const std::optional<sim::StepUsage>& usage;
  std::int64_t left = 0;  ///< micro-batches that were not simulated
  const std::optional<ExpandedCapture>& capture;
  const Program& program;
  const std::optional<KnownHost>& host;
};

/// What was asked.
struct Answered {
  std::string file;
  OutputFormat format = OutputFormat::Text;
  bool machine_is_named = false;
};

void print_answer(const Answered& of, const Timeline& timeline, const SimulatedStep& step,
                  const Machine& machine);

}  // namespace foretrace
