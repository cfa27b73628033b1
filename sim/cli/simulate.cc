#include "sim/simulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/frontend.h"
#include "models/machine/machine.h"
#include "models/what_if/known_host.h"
#include "reports/calls/join_calls.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/check/check.h"
#include "scenarios/fabric/read.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/training/captured_usage.h"
#include "sim/applications/training/memory_track.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/step_band.h"
#include "sim/applications/training/usage.h"
#include "sim/cli/captured.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/simulate_answer.h"
#include "sim/cli/simulate_options.h"
#include "sim/cli/simulated_run.h"
#include "sim/environment_check.h"
#include "sim/machine_check.h"
#include "sim/made_from.h"
#include "sim/record/rests_on.h"

namespace foretrace {
namespace {

/// One line about all regions that are too short to be measured well; empty when none is.
std::string short_regions(const Program& program, const Timeline& timeline) {
  constexpr std::int64_t kShortNs = 30'000;
  constexpr std::size_t kMostNamed = 3;
  if (program.warmup == 0) return {};  // what is cold cannot be repeated
  const std::vector<OpInfo> index = index_ops(program);
  std::map<std::uint32_t, std::string> found;  // by operation
  for (const RegionSamples& one : timeline.regions) {
    const auto* region = std::get_if<Region>(&index.at(one.op).op->kind);
    if (region == nullptr || is_of_issuing(*region)) continue;
    const std::int64_t ns = one.samples_ns.front();
    if (ns > 0 && ns < kShortNs) found.emplace(one.op, one.name);
  }
  if (found.empty()) return {};
  std::vector<std::string> names;
  for (const auto& [op, name] : found) {
    if (names.size() < kMostNamed) names.push_back(fmt::format("'{}'", name));
  }
  if (found.size() > kMostNamed) names.push_back(fmt::format("{} more", found.size() - kMostNamed));
  return fmt::format(
      "{}: note: regions under 30 us jitter when they are measured: {}; put a repeat inside and "
      "divide with per\n",
      program.file, fmt::join(names, ", "));
}

/// --nodes and --placement in place of what the scenario says.
void spread(Program& program, const SimulateOptions& options) {
  if (!options.placement.empty()) program.placement = parse_placement(options.placement);
  if (!options.nodes) return;
  if (*options.nodes == 0 || program.processes % *options.nodes != 0) {
    throw UsageError{fmt::format("--nodes {}: {} processes cannot be spread evenly over them",
                                 *options.nodes, program.processes)};
  }
  program.nodes = *options.nodes;
  program.nodes_follow = false;
}

/// Nodes that the file does not say, or --nodes in their place: which processes are alike follows
/// from them.
void take_nodes(ExpandedScenario& training, const SimulateOptions& options,
                const Machine& machine) {
  Program program;
  program.processes = static_cast<std::uint32_t>(training.step.processes());
  program.nodes = static_cast<std::uint32_t>(training.step.nodes);
  program.nodes_follow = training.expansion.program.nodes_follow;
  spread(program, options);
  const std::uint32_t nodes = nodes_of(program, machine);
  training.expansion.program.nodes_follow = false;
  if (nodes == training.step.nodes) return;
  training.step.nodes = nodes;
  training.expansion = training.expand(training.step, training::Ranks::OneOfEach);
}

/// Of a training step's micro-batches those that are simulated. Returns how many are left out.
std::int64_t leave_out_passes(ExpandedScenario& training, training::Ranks ranks) {
  const training::TrainingStep fewer = sim::with_fewer_passes(training.step);
  const std::int64_t left = training.step.passes - fewer.passes;
  if (left == 0) return 0;
  training::Expansion expansion = training.expand(fewer, ranks);
  training.expansion.program = std::move(expansion.program);
  training.expansion.curves = std::move(expansion.curves);
  return left;
}

/// A capture's record stands for many ranks alike: beyond a node one of them says as much.
bool simulates_one_of_each(const SimulateOptions& options, const Program& program,
                           const Machine& machine, bool is_capture) {
  constexpr std::uint32_t kAllOf = 8;
  if (options.one_of_each) return true;
  if (!is_capture || program.processes <= kAllOf) return false;
  if (program.fabric || machine.fabric || !faults_of(program, machine).empty()) return false;
  print_error(
      "{}: note: of ranks that one record stands for one is simulated, as with --one-of-each\n",
      program.file);
  return true;
}

/// A host's own file is a what-if of the machine; loops are of captured programs alone.
SimulateOptions with_host(SimulateOptions options) {
  if (options.host.empty() || has_loops(options.host)) return options;
  options.with.insert(options.with.begin(), what_if_of_host(options.host));
  options.host.clear();
  return options;
}

int run_simulate(const SimulateOptions& options) {
  const std::string text = read_text_file(options.file);
  if (const auto serving = read_serving_scenario(text, options.file, options.parameters)) {
    return simulate_serving(options, *serving, text);
  }
  const auto ranks = options.one_of_each ? training::Ranks::OneOfEach : training::Ranks::All;
  auto training = read_training(text, options.file, options.parameters, ranks);
  if (options.few_passes && !training) {
    throw UsageError{"--few-passes: this scenario has no 'training_step' of foretrace's own code"};
  }
  if (training) print_error("{}", render(training->warnings, text));
  const Machine of_file = changed_machine(options.machine, options.with);
  Machine machine = through_frontend(of_file, parse_frontend(options.frontend));
  leave_out_terms(machine, options.without);
  if (training && options.one_of_each) take_nodes(*training, options, machine);
  const std::int64_t left = options.few_passes ? leave_out_passes(*training, ranks) : 0;
  std::optional<ExpandedCapture> capture =
      training ? std::nullopt : read_captured(text, options.file, options.parameters);
  if (!options.host.empty() && !capture)
    throw UsageError{"--host: this scenario has no 'captured_step'"};
  const std::optional<KnownHost> host =
      options.host.empty() ? std::nullopt : std::optional{take_host(machine, options.host)};
  LoadedToRun loaded = training  ? LoadedToRun{std::move(training->expansion.program)}
                       : capture ? LoadedToRun{std::move(capture->expansion.program)}
                                 : load_to_run(options.file, options.parameters);
  Program& program = loaded.program;
  if (capture) {
    print_error("{}", render(capture->notes(), text));
    const std::string reason = sim::why_it_does_not_fit(capture->expansion, machine);
    if (!reason.empty()) throw UsageError{fmt::format("{}: {}", options.file, reason)};
  }
  spread(program, options);
  if (options.one_of_each &&
      (program.fabric || machine.fabric || !faults_of(program, machine).empty())) {
    throw UsageError{"--one-of-each: a fabric or faults make alike ranks differ; leave it out"};
  }
  if (training && !sim::memory_verdict(training->expansion.memory, machine).fits) {
    throw UsageError{sim::describe(training->step, training->expansion, machine, std::nullopt)};
  }
  check_run_directory(options);
  if (const Diagnostics problems = check_fits(program, machine); !problems.empty()) {
    throw UsageError{render(problems, "")};
  }
  if (const Diagnostics problems = refused_collectives(program, machine); !problems.empty()) {
    throw UsageError{render(problems, text)};
  }
  if (const Diagnostics problems = unsupported_types(program, machine); !problems.empty()) {
    throw UsageError{render(problems, text)};
  }
  print_error("{}", render(unmodelled_settings(program), text));
  print_error("{}", render(check_network(nodes_of(program, machine), machine), ""));
  for (const std::string& note : captured_notes(program, machine, !options.with.empty())) {
    print_error("{}: note: {}\n", options.file, note);
  }
  Timeline timeline =
      simulated(program, machine, options, text,
                simulates_one_of_each(options, program, machine, capture.has_value()));
  if (capture) {
    timeline.memory_peaks = sim::memory_peaks(capture->expansion, program);
    if (const std::string& script = capture->expansion.script_digest; !script.empty())
      timeline.origin.versions[kScriptDigest] = script;
    sim::widen_bands(timeline, machine, sim::captured_usage(program, timeline), program);
  }
  auto usage = training ? sim::usage_of(timeline) : std::nullopt;
  if (training) timeline.memory = sim::memory_track(timeline, training->expansion.curves);
  if (usage) sim::set_step_bands(timeline, machine, *usage);
  if (!options.run.empty()) {
    note_made_from(timeline.origin, of_file);
    write_run(timeline, options.run);
  }
  if (usage && left > 0) {
    usage = sim::with_more_turns(
        *usage, timeline, program,
        static_cast<double>(left) / static_cast<double>(sim::passes_of_turn(training->step)));
  }
  if (options.answers) {
    print_answer({options.file, options.format, options.machine_is_named}, timeline,
                 {training, usage, left, capture, program, host}, machine);
  }
  print_error("{}", short_regions(program, timeline));
  print_error("{}", rests_on(timeline, machine));
  for (const std::string& line : timeline.outcome.explanation) print_error("{}\n", line);
  return timeline.outcome.kind == Outcome::Kind::Completed && loaded.ends ? kDone : kBadAnswer;
}

}  // namespace

void simulate_into(const std::filesystem::path& file, const std::string& machine,
                   const std::vector<std::string>& with, const std::filesystem::path& directory) {
  SimulateOptions options;
  options.file = file.string();
  options.machine = machine;
  options.with = with;
  options.run = directory.string();
  options.answers = false;
  run_simulate(options);
}

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App& command = add_subcommand(
      app, "simulate", "Predict a scenario's timeline on a machine model; needs no GPU",
      "foretrace simulate scenarios/examples/prefetch_two_streams.yaml "
      "--machine h200-nvswitch-8 -o RUN/\n\n"
      "A region's time is that of the process that takes longest. Its band is where nine of ten\n"
      "measured medians should lie, of programs and machines as those that were measured for the\n"
      "model; foretrace accuracy says how many did. No band: the scenario itself gives the time.");
  command.add_option("file", options->file, "Scenario file")->required();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_without_option(command, options->without);
  command
      .add_option("--host", options->host,
                  "The machine's GPUs in another host: what foretrace-hw host wrote there; of a "
                  "captured program also what python3 -m foretrace host did")
      ->option_text("FILE");
  command
      .add_option("--frontend", options->frontend,
                  "cuda or pytorch: whose host time the program's calls take")
      ->option_text("cuda|pytorch")
      ->capture_default_str();
  command
      .add_option("-o,--output", options->run,
                  "Directory for predicted.timeline.json and trace.pftrace")
      ->check(written_directory(), "")
      ->option_text("DIR");
  add_format_option(command, options->format,
                    "a table of the regions; of a step also what limits it");
  add_fidelity_option(command, options->fidelity);
  command.add_option("--nodes", options->nodes,
                     "Default: the scenario's, else as many as its processes fill");
  command
      .add_option("--placement", options->placement,
                  "block or round_robin: how processes are dealt out over nodes; default: the "
                  "scenario's, else block")
      ->option_text("block|round_robin");
  command.add_flag(
      "--one-of-each", options->one_of_each,
      "Of processes with the same threads only the first: the same times where they are "
      "alike in all else, as replicas of a training step are");
  command.add_flag(
      "--few-passes", options->few_passes,
      "Of a training step's many micro-batches some; the others take as long as those that are "
      "alike: within 2 % of all of them");
  add_set_option(command, options->parameters);
  command.callback([options, &command, &exit_code] {
    options->machine_is_named = command.count("--machine") > 0;
    exit_code = run_simulate(with_host(*options));
  });
}

}  // namespace foretrace
