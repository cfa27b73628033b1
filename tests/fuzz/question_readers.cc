// What `sweep` and `plan` are asked: axes and what-ifs, and a model's config.json.
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/training_step/read.h"
#include "sim/applications/plan/bound.h"
#include "sim/applications/plan/layout.h"
#include "sim/applications/sweep/points.h"
#include "tests/fuzz/readers.h"

namespace foretrace::fuzz {
namespace {

const Machine& shipped_machine() {
  static const Machine once = load_machine("h200-nvswitch-8");
  return once;
}

/// "with NAME=VALUES" or "machine NAMES"; any other line is `--set`'s.
sweep::Axis axis_of(const std::string& line) {
  if (line.starts_with("with ")) return parse_axis(sweep::Kind::With, line.substr(5), "--with");
  if (line.starts_with("machine ")) return sweep::machine_axis(line.substr(8));
  return parse_axis(sweep::Kind::Set, line, "--set");
}

}  // namespace

/// A line is an axis.
void read_as_sweep(std::string_view bytes) {
  try {
    std::vector<sweep::Axis> axes;
    std::size_t points = 1;
    std::istringstream lines{std::string{bytes}};
    for (std::string line; std::getline(lines, line);) {
      axes.push_back(axis_of(line));
      if (axes.back().values.empty()) std::abort();
      points *= axes.back().values.size();
      constexpr std::size_t kEnough = 100;  // the more take longer, and say nothing new
      if (points > kEnough) return;
    }
    for (const sweep::Point& point : sweep::points_of(axes)) {
      static_cast<void>(point.parameters(axes));
      Machine machine = shipped_machine();
      apply_what_ifs(machine, point.what_ifs(axes));
      if (point.number > 2) break;
    }
  } catch (const UsageError&) {
  }
}

/// With what `plan` makes of a model before it simulates.
void read_as_config(std::string_view bytes) {
  Reader reader{"fuzz.yaml"};
  const YamlNode at;
  plan::Question question;
  question.architecture = training::read_config(reader, at, std::string{bytes}, "config.json");
  if (reader.problems.error_count() > 0) {
    for (const Diagnostic& problem : reader.problems.take()) {
      if (problem.message.empty()) std::abort();
    }
    return;
  }
  training::TrainingStep step;
  step.model = question.architecture;
  step.sequence = question.sequence;
  if (training::what_is_too_large(step)) return;
  question.model = "{config: config.json}";
  question.model_name = "config";
  question.machine = shipped_machine();
  question.global_batch = 64;
  try {
    for (const plan::Layout& layout : plan::layouts(question, 16)) {
      if (plan::arithmetic_bound(question, layout) < 0) std::abort();
      static_cast<void>(plan::scenario_text(question, layout));
    }
  } catch (const UsageError&) {
  }
}

}  // namespace foretrace::fuzz
