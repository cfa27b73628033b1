#include "sim/cli/judge/predicted_run.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "models/machine/machine.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/print.h"
#include "scenarios/text/text_file.h"
#include "sim/engine/children.h"
#include "sim/machine_check.h"
#include "sim/record/rests_on.h"
#include "sim/simulate.h"
#include "sim/training/captured_usage.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStepFile = "step.yaml";  // what `foretrace capture` writes

void predict(const fs::path& file, const std::string& machine_name, const fs::path& result) {
  const std::string text = read_text_file(file);
  const Machine machine = load_machine(machine_name);
  const auto capture = read_captured(text, file.string());
  const auto training = capture ? std::nullopt : read_training(text, file.string());
  const std::string* expanded = capture ? &capture->text : training ? &training->text : nullptr;
  Program program =
      expanded != nullptr ? read_expanded(*expanded, file.string()) : load_scenario(file);
  if (capture) {
    program.nodes_follow = capture->nodes_follow;
    print_error("{}", render(capture->notes(), text));
    const std::string reason = sim::why_it_does_not_fit(capture->expansion, machine);
    if (!reason.empty()) throw UsageError{fmt::format("{}: {}", file.string(), reason)};
  }
  if (training) program.nodes_follow = training->nodes_follow;
  if (const Diagnostics problems = check_fits(program, machine); !problems.empty()) {
    throw UsageError{render(problems, "")};
  }
  Timeline timeline = simulate(program, machine);
  if (capture) {
    timeline.memory_peaks = sim::memory_peaks(capture->expansion, program);
    sim::widen_bands(timeline, machine, sim::captured_usage(program, timeline), program);
  }
  print_error("{}", rests_on(timeline, machine));
  write_timeline(timeline, result);
}

/// A directory that goes with its owner.
class Scratch {
 public:
  Scratch() : path_{(fs::temp_directory_path() / "foretrace-XXXXXX").string()} {
    if (mkdtemp(path_.data()) == nullptr)
      throw UsageError{fmt::format("{}: cannot be made", path_)};
  }
  ~Scratch() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path file() const { return fs::path{path_} / kPredictedFile; }

 private:
  std::string path_;
};

/// In a child: a process has one simulation, and --explain and other scenarios need theirs.
Timeline predicted_in_a_child(const fs::path& file, const std::string& machine) {
  const Scratch scratch;
  const auto results = run_in_children({[&] {
    try {
      predict(file, machine, scratch.file());
    } catch (const UsageError& error) {
      print_error("{}\n", error.what());
      return std::vector<double>{};
    }
    return std::vector<double>{1};
  }});
  if (results.front().empty()) {
    throw UsageError{fmt::format("{}: not predicted on {}: see above", file.string(), machine)};
  }
  return read_timeline(scratch.file());
}

}  // namespace

Run run_of(const fs::path& path, const std::string& machine) {
  const bool is_scenario = path.extension() == ".yaml" || path.extension() == ".yml";
  std::error_code none;  // what cannot be looked into is refused by load_run()
  const bool is_directory = fs::is_directory(path, none);
  const bool is_capture = is_directory && fs::exists(path / kStepFile) && !fs::exists(path / kPredictedFile);
  if (!is_scenario && !is_capture) return load_run(path);
  const fs::path file = is_scenario ? path : path / kStepFile;
  Run run{.path = path, .predicted = std::nullopt, .measured = std::nullopt};
  if (fs::exists(path / kMeasuredFile)) run = load_run(path);
  run.predicted = LoadedTimeline{file, predicted_in_a_child(file, machine)};
  return run;
}

}  // namespace foretrace
