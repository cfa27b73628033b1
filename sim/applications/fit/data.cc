#include "sim/applications/fit/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "models/cost/host.h"
#include "reports/compare/compare.h"
#include "reports/compare/merge.h"
#include "reports/timeline/environments.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/statistics.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/fit/program.h"
#include "sim/record/region_reader.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastSpread = 0.01;  ///< no region is trusted more than this
/// What the model is off in the mean on programs that nobody tuned to, with the host known (blind
/// rounds 29 to 32): a region that repeats within 1 % says no more than this of a parameter. The
/// sizes of an NCCL sweep follow the model closer than that.
constexpr double kModelError = 0.06;

bool is_sweep(const Program& program) {
  return std::ranges::find(program.tags, "nccl") != program.tags.end();
}

/// `rule` is a name, or the beginning of names and a star.
bool names(const std::string& rule, const std::string& name) {
  return rule.ends_with('*') ? name.starts_with(rule.substr(0, rule.size() - 1)) : name == rule;
}

Standing standing_of(const FitRun& run, const HoldOut& hold_out, std::uint64_t pass) {
  const bool calibrates = run.program.name.starts_with("calibrate") ||
                          std::ranges::any_of(hold_out.learn, [&](const std::string& rule) {
                            return names(rule, run.program.name);
                          });
  for (const std::string& rule : hold_out.scenarios) {
    if (names(rule, run.program.name)) return Standing::Validation;
  }
  if (!calibrates && !is_sweep(run.program)) return Standing::Validation;
  if (!is_sweep(run.program)) return Standing::Fit;
  if (hold_out.ranks.contains(run.gpus)) return Standing::HeldOutRanks;
  const bool held = hold_out.every_other_size && pass % 2 == 1;
  return held ? Standing::HeldOutSize : Standing::Fit;
}

std::vector<fs::path> measured_files(const std::vector<fs::path>& roots) {
  std::vector<fs::path> files;
  for (const fs::path& named : roots) {
    const fs::path root = shipped_file(named);
    if (fs::is_regular_file(root)) {
      files.push_back(root);
      continue;
    }
    if (!fs::is_directory(root)) {
      throw UsageError{fmt::format("{}: no such directory", root.string())};
    }
    std::vector<fs::path> below;
    for (const auto& entry : fs::recursive_directory_iterator{root}) {
      if (entry.path().filename() == kMeasuredFile) below.push_back(entry.path());
    }
    std::ranges::sort(below);
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

}  // namespace

HoldOut parse_hold_out(const std::vector<std::string>& rules) {
  HoldOut hold_out;
  for (const std::string& rule : rules) {
    int ranks = 0;
    if (rule == "every-other") {
      hold_out.every_other_size = true;
    } else if (rule == "none") {
      hold_out.every_other_size = false;
    } else if (rule.starts_with("scenario=")) {
      hold_out.scenarios.insert(rule.substr(9));
    } else if (rule.starts_with("ranks=") &&
               std::from_chars(rule.data() + 6, rule.data() + rule.size(), ranks).ptr ==
                   rule.data() + rule.size() &&
               ranks >= 2) {
      hold_out.ranks.insert(ranks);
    } else {
      throw UsageError{fmt::format(
          "--hold-out {}: not a rule\n  hint: every-other, none, ranks=4 or scenario=NAME", rule)};
    }
  }
  return hold_out;
}

namespace {

/// How many times as fast as `machine`'s the host of each run was; 0 where it does not say.
std::vector<double> host_factors(const FitData& data, const Machine& machine) {
  std::vector<double> factors;
  for (const FitRun& run : data.runs) {
    const auto launch = cost::launch_time(machine, run.program.processes);
    const bool says = launch && run.launch_ns > 0;
    const double factor = says ? to_seconds(*launch) * 1e9 / run.launch_ns : 0;
    factors.push_back(factor < kSlowestHost || factor > kFastestHost ? 0 : factor);
  }
  return factors;
}

std::optional<double> median_of_known(std::vector<double> factors) {
  std::erase(factors, 0);
  if (factors.empty()) return std::nullopt;
  return median(std::move(factors));
}

}  // namespace

std::optional<double> host_factor(const FitData& data, const Machine& machine) {
  return median_of_known(host_factors(data, machine));
}

void tell_hosts_apart(FitData& data, const Machine& machine) {
  const std::vector<double> factors = host_factors(data, machine);
  const auto middle = median_of_known(factors);
  for (std::size_t i = 0; i < data.runs.size(); ++i) {
    if (factors[i] > 0) data.runs[i].host = factors[i] / *middle;
  }
}

void add_run(FitData& data, Program program, const Timeline& measured, const HoldOut& hold_out) {
  FitRun run;
  run.program = std::move(program);
  run.gpus = static_cast<int>(run.program.processes * run.program.devices);
  run.first_target = data.targets.size();
  run.model_error = is_sweep(run.program) ? 0 : kModelError;
  const RegionReader reader{run.program};
  for (const RegionRow& row : compare_regions(measured, measured, 1)) {
    if (!row.second || row.second->median_ns <= 0) continue;
    const RegionFigure& figure = *row.second;
    const double spread = (figure.p95_ns - figure.p5_ns) / 2 / figure.median_ns;
    data.targets.push_back({data.runs.size(), row.op, row.instance, row.name, figure.median_ns,
                            std::max(spread, kLeastSpread),
                            standing_of(run, hold_out, reader.pass_of(row.op, row.instance)),
                            reader.content(row.op, row.instance).bytes});
  }
  std::vector<double> launches_ns;
  for (const ProcessStart& start : measured.origin.starts) {
    if (const auto ns = mean_launch_ns(start)) launches_ns.push_back(*ns);
  }
  if (!launches_ns.empty()) run.launch_ns = median(launches_ns);
  data.launches_ns.insert(data.launches_ns.end(), launches_ns.begin(), launches_ns.end());
  run.targets = data.targets.size() - run.first_target;
  data.runs.push_back(std::move(run));
}

FitData load_fit_data(const std::vector<fs::path>& roots, const HoldOut& hold_out) {
  FitData data;
  std::map<std::string, std::vector<LoadedTimeline>> by_program;
  std::vector<std::string> order;  // of first appearance: the result does not depend on hashes
  for (const fs::path& file : measured_files(roots)) {
    LoadedTimeline loaded{file, read_timeline(file)};
    const Timeline& timeline = loaded.timeline;
    if (!timeline.origin.measured || timeline.outcome.kind != Outcome::Kind::Completed ||
        timeline.regions.empty()) {
      data.left_out.push_back(
          fmt::format("{}: no completed measurement of regions", file.string()));
      continue;
    }
    loaded.timeline.spans.clear();
    auto& same = by_program[timeline.origin.program_hash];
    if (same.empty()) order.push_back(timeline.origin.program_hash);
    same.push_back(std::move(loaded));
  }
  int most_gpus = 0;
  for (const std::string& hash : order) {
    auto& parts = by_program[hash];
    auto program = program_of(parts.back());
    if (!program) {
      data.left_out.push_back(
          fmt::format("{}: measured with another version of {}, or with parameters that it does "
                      "not note",
                      parts.back().file.string(), parts.back().timeline.origin.file));
      continue;
    }
    const std::vector<OpRow> rows = op_rows(*program);
    for (const LoadedTimeline& part : parts) {
      if (has_ops_of(part.timeline, rows)) continue;
      throw UsageError{fmt::format("{}: its operations are not those of {}, whose hash it has",
                                   part.file.string(), program->file)};
    }
    const auto& starts = parts.back().timeline.origin.starts;
    const auto environment = starts.empty()
                                 ? std::nullopt
                                 : find_environment(parts.back().file, starts.back().environment);
    std::vector<Timeline> timelines;
    for (LoadedTimeline& part : parts) timelines.push_back(std::move(part.timeline));
    add_run(data, std::move(*program), merge_starts(std::move(timelines)), hold_out);
    data.runs.back().where = parts.back().file.parent_path().string();
    if (data.runs.back().gpus > most_gpus && environment) {
      most_gpus = data.runs.back().gpus;
      data.environment = *environment;
    }
  }
  if (data.targets.empty()) {
    for (const std::string& line : data.left_out) print_error("{}\n", line);
    throw UsageError{
        fmt::format("nothing to fit: no usable {} there\n  hint: measure with "
                    "'mpirun -n 8 foretrace-hw calibrate -o RUNS/'",
                    kMeasuredFile)};
  }
  return data;
}

}  // namespace foretrace
