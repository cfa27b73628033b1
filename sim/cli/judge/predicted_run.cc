#include "sim/cli/judge/predicted_run.h"

#include <fmt/format.h>

#include <vector>

#include "reports/timeline/temporary_directory.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/simulated_run.h"
#include "sim/engine/children.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStepFile = "step.yaml";  // what `foretrace capture` writes

/// In a child: a process has one simulation, and --explain and other scenarios need theirs.
Timeline predicted_in_a_child(const fs::path& file, const std::string& machine,
                              const std::vector<std::string>& with) {
  const TemporaryDirectory scratch{"run"};
  const auto results = run_in_children({[&] {
    try {
      simulate_into(file, machine, with, scratch.path());
    } catch (const UsageError& error) {
      print_error("{}\n", error.what());
      return std::vector<double>{};
    }
    return std::vector<double>{1};
  }});
  if (results.front().empty()) {
    throw UsageError{fmt::format("{}: not predicted on {}: see above", file.string(), machine)};
  }
  return read_timeline(scratch.path() / kPredictedFile);
}

}  // namespace

Run run_of(const fs::path& path, const std::string& machine, const std::vector<std::string>& with) {
  const bool is_scenario = path.extension() == ".yaml" || path.extension() == ".yml";
  std::error_code none;  // what cannot be looked into is refused by load_run()
  const bool is_directory = fs::is_directory(path, none);
  const bool is_capture =
      is_directory && fs::exists(path / kStepFile) && !fs::exists(path / kPredictedFile);
  if (!is_scenario && !is_capture) return load_run(path);
  const fs::path file = is_scenario ? path : path / kStepFile;
  Run run{.path = path, .predicted = std::nullopt, .measured = std::nullopt};
  if (fs::exists(path / kMeasuredFile)) run = load_run(path);
  run.predicted = LoadedTimeline{file, predicted_in_a_child(file, machine, with)};
  return run;
}

}  // namespace foretrace
