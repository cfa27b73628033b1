#include "hw/calibrate/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "hw/run/program_facts.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

namespace fs = std::filesystem;

// From the dates in reports/measured: H200s, 5 repetitions of a sweep, NCCL's start included.
constexpr double kScenarioSeconds = 3;
double sweep_seconds(int ranks, bool one_thread) {
  return one_thread ? 0.2 + 0.2 * ranks : 0.8 + 0.33 * ranks;
}

std::vector<fs::path> scenarios_in(const fs::path& directory) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator{directory}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Scenarios that measure an operation by size say so; scenarios/nccl has others beside them.
bool is_sweep(const fs::path& file) {
  const Program program = load_scenario(file.string(), {});
  return std::ranges::find(program.tags, "nccl") != program.tags.end();
}

bool copies_between_gpus(const Program& program) {
  return any_op(program,
                [](const Op& op) { return std::holds_alternative<EnablePeerAccess>(op.kind); });
}

std::string why_not(const Program& program, const CalibrationNode& node, bool sweep) {
  const auto processes = static_cast<int>(program.processes);
  const int gpus = processes * static_cast<int>(program.devices);
  const bool whole_nodes = processes > node.processes && processes % node.processes == 0 &&
                           program.devices == 1 && processes <= node.processes * node.nodes;
  if (!(whole_nodes && sweep)) {
    if (gpus > node.gpus) return fmt::format("needs {} GPUs, this node has {}", gpus, node.gpus);
    if (processes > node.processes) {
      return fmt::format("needs {} processes{}: mpirun -n {}", processes,
                         node.nodes > 1 ? " on one node" : "", node.gpus * node.nodes);
    }
  }
  if (!node.peer_access && copies_between_gpus(program)) {
    return "no peer access between GPUs 0 and 1";
  }
  if (!program.environment.empty()) {
    return "sets environment variables: measure it in a start of its own";
  }
  if (program.warmup == 0) return "a cold program (warmup: 0): measure it in a start of its own";
  return "";
}

CalibrationStep make_step(const fs::path& file, const ParameterValues& parameters,
                          const CalibrationNode& node, bool sweep) {
  const std::string text = read_text_file(file);
  const auto read = read_scenario(text, file.string(), parameters);
  if (!read) throw UsageError{render(read.error(), text)};
  CalibrationStep step;
  step.file = file.string();
  step.parameters = parameters;
  step.name = read->program.name;
  step.processes = static_cast<int>(read->program.processes);
  step.seconds = kScenarioSeconds;
  step.sweep = sweep;
  step.why_not = why_not(read->program, node, sweep);
  return step;
}

void add_sweeps(std::vector<CalibrationStep>& steps, const std::vector<fs::path>& files, int ranks,
                const CalibrationNode& node) {
  for (const fs::path& file : files) {
    CalibrationStep step = make_step(file, sweep_parameters(ranks), node, true);
    const bool one_thread = step.processes < ranks;
    if (one_thread && ranks != std::max(2, node.processes)) continue;  // with all GPUs only
    step.folder = fmt::format("{}_ranks", ranks);
    step.seconds = sweep_seconds(ranks, one_thread);
    steps.push_back(std::move(step));
  }
}

}  // namespace

std::vector<int> rank_counts(int processes, int nodes) {
  std::set<int> counts;
  for (const int ranks : {2, processes / 2, processes}) {
    if (ranks >= 2 && ranks <= processes) counts.insert(ranks);
  }
  for (int several = 2; several < nodes; several *= 2) counts.insert(several * processes);
  if (nodes > 1) counts.insert(nodes * processes);
  return {counts.begin(), counts.end()};
}

ParameterValues sweep_parameters(int ranks) {
  // Each rank's share: the largest power of two that keeps the whole within 64 B and 8 MiB.
  const auto whole = [&](int share, int most) {
    while (2 * share * ranks <= most) share *= 2;
    return share * ranks;
  };
  return {{"ranks", std::to_string(ranks)},
          {"small", fmt::format("{}B", whole(4, 64))},
          {"large", fmt::format("{}KiB", whole(64, 8 * 1024))}};
}

std::vector<CalibrationStep> plan_calibration(const fs::path& scenarios,
                                              const CalibrationNode& node) {
  std::vector<CalibrationStep> steps;
  for (const fs::path& file : scenarios_in(scenarios / "calibration")) {
    steps.push_back(make_step(file, {}, node, false));
  }
  if (steps.empty()) {
    throw UsageError{
        fmt::format("{}: no scenarios in calibration/ there\n  hint: name the "
                    "directory of foretrace's scenarios with --scenarios DIR",
                    scenarios.string())};
  }
  std::ranges::stable_sort(steps, {}, &CalibrationStep::processes);
  std::vector<fs::path> sweeps = scenarios_in(scenarios / "nccl");
  std::erase_if(sweeps, std::not_fn(is_sweep));
  std::vector<int> counts = rank_counts(node.processes, node.nodes);
  if (counts.empty()) counts = {2};  // in the plan, with the reason why not
  for (const int ranks : counts) add_sweeps(steps, sweeps, ranks, node);
  return steps;
}

std::string to_text(const std::vector<CalibrationStep>& steps) {
  auto rows = nlohmann::json::array();
  for (const CalibrationStep& step : steps) {
    rows.push_back({step.file, step.parameters, step.folder, step.name, step.processes, step.sweep,
                    step.seconds, step.why_not});
  }
  return rows.dump();
}

std::vector<CalibrationStep> steps_from(const std::string& text) {
  std::vector<CalibrationStep> steps;
  for (const auto& row : nlohmann::json::parse(text)) {
    steps.push_back(
        {row[0], row[1].get<ParameterValues>(), row[2], row[3], row[4], row[5], row[6], row[7]});
  }
  return steps;
}

}  // namespace foretrace::hw
