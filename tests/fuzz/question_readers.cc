// What `sweep` and `plan` are asked: axes and what-ifs, and a model's config.json.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "models/what_if/what_if.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/training_step/read.h"
#include "sim/applications/local_page/guard.h"
#include "sim/applications/local_page/problem.h"
#include "sim/applications/local_page/question.h"
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

/// Three lines of a header, then the body: no path leaves the page, and what a command gets is one
/// of `plan`'s options or a name.
void read_as_page(std::string_view bytes) {
  using namespace local_page;
  std::string_view lines[3];
  std::string_view rest = bytes;
  for (std::string_view& line : lines) {
    line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  const Guard guard{"0123456789abcdef0123456789abcdef", 8321};
  const auto path = admitted(
      guard,
      {.method = "POST", .target = lines[0], .host = lines[1], .origin = lines[2], .site = {}});
  if (path && path->find_first_of("%?#\\") != std::string::npos) std::abort();
  if (path && path->find("..") != std::string::npos) std::abort();
  if (const auto question = read_plan_question(rest)) {
    for (std::size_t i = 0; i < question->arguments.size(); ++i) {
      const std::string& word = question->arguments[i];
      if (word.starts_with("--") != (i >= 2)) std::abort();
      if (word.find_first_of(std::string_view{"\n\r\0", 3}) != std::string::npos) std::abort();
      if (i < 2 && word.find('/') != std::string::npos) std::abort();
    }
  } else {
    static_cast<void>(json_of(question.error()));
  }
  static_cast<void>(read_row_question(rest));
  static_cast<void>(json_of(problem_of(bytes, rest)));
}

}  // namespace foretrace::fuzz
