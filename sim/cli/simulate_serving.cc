#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "models/what_if/known_host.h"
#include "scenarios/base/text/print.h"
#include "scenarios/check/check.h"
#include "scenarios/serving/grid.h"
#include "sim/applications/serving/limits.h"
#include "sim/applications/serving/timeline.h"
#include "sim/cli/simulate_options.h"
#include "sim/machine_check.h"
#include "sim/made_from.h"
#include "sim/record/rests_on.h"

namespace foretrace {
namespace {

/// What a file of requests has no use for is not left unsaid.
void refuse_for_serving(const SimulateOptions& options) {
  const std::pair<bool, const char*> given[] = {{options.frontend != "cuda", "--frontend"},
                                                {options.nodes.has_value(), "--nodes"},
                                                {!options.placement.empty(), "--placement"},
                                                {options.few_passes, "--few-passes"}};
  for (const auto& [is_given, name] : given) {
    if (!is_given) continue;
    throw UsageError{
        fmt::format("{}: not for a scenario with 'serving': its program is what "
                    "'foretrace print {}' writes, and takes it",
                    name, options.file)};
  }
}

/// "arithmetic 60 %, ...".
std::string limits_words(const std::vector<ServingFacts::Share>& limits) {
  constexpr double kLittle = 0.005;
  std::vector<std::string> words;
  for (const ServingFacts::Share& one : limits) {
    if (one.share < kLittle) continue;
    words.push_back(fmt::format("{} {:.0f} %", one.what, 100 * one.share));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

int simulate_serving(const SimulateOptions& options, const ServingScenario& scenario,
                     const std::string& text) {
  refuse_for_serving(options);
  print_error("{}", render(scenario.warnings, text));
  check_run_directory(options);
  const Machine of_file = changed_machine(options.machine, options.with);
  Machine machine = of_file;
  leave_out_terms(machine, options.without);
  serving::Serving asked = scenario.serving;
  if (!options.host.empty()) {
    const KnownHost host = take_host(machine, options.host);
    asked.host = serving::Serving::Host{.factor = host.factor, .band = host.band};
    print_error("{}", describe(host, machine));
  }
  const std::vector<serving::Serving> kinds = serving::kinds_of(asked, machine);
  print_error("{}", serving::engine_note(kinds.back()));
  std::vector<Program> programs;
  for (const serving::Serving& kind : kinds) {
    programs.push_back(serving::iterations(kind, serving::batches_of(serving::grid_of(kind)),
                                           scenario.program, scenario.at));
    if (const Diagnostics problems = unsupported_types(programs.back(), machine);
        !problems.empty()) {
      throw UsageError{render(problems, text)};
    }
  }
  std::vector<std::vector<serving::RegionTime>> times;
  if (kinds.size() > 1) {  // a process simulates once
    times.push_back(serving::in_child(
        [&] { return simulated(programs.front(), machine, options, text, true); }));
    print_error(
        "{}: note: what the answer rests on, and what limits it, is said of the engines of "
        "'decode'\n",
        options.file);
  }
  const Timeline timeline = simulated(programs.back(), machine, options, text, true);
  times.push_back(serving::region_times(timeline));
  const serving::Predicted predicted = serving::predict(kinds, machine, times);
  const auto limits = serving::limits_of(kinds.back(), predicted, timeline);
  if (!options.run.empty()) {
    Timeline requests = serving::timeline_of(kinds.back(), predicted, timeline, scenario.at.line);
    note_made_from(requests.origin, of_file);
    requests.serving->limits = limits;
    constexpr std::int64_t kMostAsked = 20'000;  // each change is the whole traffic again
    if (predicted.middle.requests <= kMostAsked) {
      requests.serving->what_if = serving::what_ifs(kinds, predicted, machine, times, timeline);
    } else {
      print_error("{}: note: what-ifs are left out above {} requests\n", options.file, kMostAsked);
    }
    write_run(requests, options.run);
    if (const auto drawn = requests.origin.versions.find("drawn");
        drawn != requests.origin.versions.end()) {
      print_error("{}: note: {}\n", options.file, drawn->second);
    }
  }
  if (!options.answers) {  // the run directory is all that was asked
  } else if (options.format == OutputFormat::Csv) {
    print_text(serving::csv_of(predicted));
  } else if (options.format == OutputFormat::Json) {
    print_text(serving::json_of(asked, predicted, machine));
  } else {
    print_text(serving::text_of(asked, predicted));
    print_out("{:<16}{}\n", "time goes on", limits_words(limits));
    print_out("\non {}{}\n", machine.name,
              options.machine_is_named ? "" : ", the default: --machine names another");
  }
  print_error("{}", rests_on(timeline, machine));
  return kDone;
}

}  // namespace foretrace
