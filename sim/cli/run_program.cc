#include "sim/cli/run_program.h"

#include <optional>
#include <string>
#include <vector>

#include "reports/compare/run_scenario.h"
#include "scenarios/base/text/text_file.h"
#include "sim/applications/training/passes.h"

namespace foretrace {
namespace {

using training::Ranks;
using training::TrainingStep;

/// The ways in which simulate may have read a training step, the cheapest first.
class Ways {
 public:
  Ways(const ExpandedScenario& given, const std::string& hash)
      : given_{given}, hash_{hash}, steps_{given.step, sim::with_fewer_passes(given.step)} {}

  std::optional<RunProgram> find() const {
    if (auto found = with_nodes(steps_[0].nodes, Ranks::OneOfEach)) return found;
    for (std::int64_t nodes = 1; nodes <= steps_[0].processes(); ++nodes) {
      if (steps_[0].processes() % nodes != 0 || nodes == steps_[0].nodes) continue;
      if (auto found = with_nodes(nodes, Ranks::OneOfEach)) return found;
    }
    return with_nodes(steps_[0].nodes, Ranks::All);
  }

 private:
  std::optional<RunProgram> with_nodes(std::int64_t nodes, Ranks ranks) const {
    for (TrainingStep step : steps_) {
      step.nodes = nodes;
      training::Expansion made = given_.expand(step, ranks);
      const auto simulated = ranks == Ranks::All ? Simulated::All : Simulated::OneOfEach;
      if (made.program.hash != hash_) continue;
      return RunProgram{std::move(made.program), simulated, given_,
                        given_.step.passes - step.passes};
    }
    return std::nullopt;
  }

  const ExpandedScenario& given_;
  const std::string& hash_;
  std::vector<TrainingStep> steps_;  ///< as it is, and with fewer micro-batches
};

}  // namespace

RunProgram program_of_run(const LoadedTimeline& run, const std::filesystem::path& scenario,
                          const ParameterValues& parameters) {
  const std::filesystem::path file = scenario.empty() ? find_scenario(run) : scenario;
  const auto training =
      read_training(read_text_file(file), file.string(), parameters, Ranks::OneOfEach);
  if (training) {
    const Ways ways{*training, run.timeline.origin.program_hash};
    if (auto found = ways.find()) return *std::move(found);
  }
  RunProgram as_it_is;
  as_it_is.program = load_scenario(file, parameters);
  check_same_program(as_it_is.program, run);
  return as_it_is;
}

}  // namespace foretrace
