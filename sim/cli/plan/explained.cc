#include "sim/cli/plan/explained.h"

#include <fmt/format.h>

#include "scenarios/base/text/errors.h"
#include "sim/cli/options.h"
#include "sim/cli/run_program.h"
#include "sim/made_from.h"

namespace foretrace {
namespace {

/// A measurement does not know the model's name.
std::string explained_on(const ExplainedWith& with, const Origin& origin) {
  if (!with.machine.empty()) return with.machine;
  const std::string& name = origin.machine;
  if (origin.measured || name.find(" with ") != std::string::npos) {
    throw UsageError{
        "which machine model to simulate on is not known from the timeline\n"
        "  hint: --machine h200-nvswitch-8, and --with what was changed"};
  }
  return name;
}

}  // namespace

explain::Explanation explained(const LoadedTimeline& run, const LoadedTimeline& predicted,
                               const ExplainedWith& with) {
  if (run.timeline.serving) {
    throw UsageError{fmt::format(
        "{}: a run of requests, which are no program: what limits them is in 'foretrace report'",
        run.file.string())};
  }
  const RunProgram of_run = program_of_run(run, with.scenario, with.parameters);
  const std::string machine = explained_on(with, predicted.timeline.origin);
  if (with.machine.empty()) check_predicted_on(predicted.timeline.origin, load_machine(machine));
  return explain::explain(of_run.program, changed_machine(machine, with.with), of_run.simulated);
}

}  // namespace foretrace
