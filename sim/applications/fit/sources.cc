#include "sim/applications/fit/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "models/machine/reading.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "sim/engine/children.h"
#include "sim/record/standing.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 3;
constexpr double kNudge = 1.02;
/// A fit finds a parameter that is a twentieth of a region: repeats of one differ by 1 to 2 %.
constexpr double kFoundShare = 0.05;

std::string name_of(const fs::path& file) {
  return fs::relative(file, data_directory()).generic_string();
}

std::vector<fs::path> files_in(const char* folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{data_directory() / "scenarios" / folder, none}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// None where the machine cannot run the scenario, or lacks a parameter that it needs.
std::vector<RegionSamples> regions_of(const fs::path& file, const Machine& machine) {
  const auto read = read_scenario(read_text_file(file), file.string());
  if (!read || !check_fits(read->program, machine).empty()) return {};
  try {
    return simulate(read->program, machine).regions;
  } catch (const UsageError&) {
    return {};
  }
}

/// As numbers: what a child sends.
std::vector<double> deciding(const fs::path& file, const Machine& machine) {
  std::vector<double> params;
  for (const RegionSamples& region : regions_of(file, machine)) {
    for (const ParameterShare& part : region.decided_by) {
      const auto param = param_named(part.parameter);
      if (param) params.push_back(static_cast<double>(*param));
    }
  }
  std::ranges::sort(params);
  params.erase(std::unique(params.begin(), params.end()), params.end());
  return params;
}

std::vector<double> times_of(const fs::path& file, const Machine& machine) {
  std::vector<double> times;
  for (const RegionSamples& region : regions_of(file, machine)) {
    times.push_back(static_cast<double>(region.samples_ns.front()));
  }
  return times;
}

/// d log(time) / d log(parameter), of the region that has the most.
double largest_share(const std::vector<double>& before, const std::vector<double>& after) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i] <= 0 || after[i] <= 0) continue;
    most = std::max(most, std::abs(std::log(after[i] / before[i]) / std::log(kNudge)));
  }
  return most;
}

/// What no span's share shows is found by moving it: one simulation more for each file.
void add_in_no_share(const std::vector<fs::path>& files, const Machine& machine,
                     std::span<const Param> wanted, DeterminedBy& determined) {
  std::vector<Machine> machines{machine};
  std::vector<Param> moved;
  for (const Param param : sim::in_no_share()) {
    if (!machine.has(param) || std::ranges::find(wanted, param) == wanted.end()) continue;
    ParamValue value = machine.get(param);
    value.value *= kNudge;
    machines.push_back(machine);
    machines.back().set(param, std::move(value));
    moved.push_back(param);
  }
  if (moved.empty()) return;
  std::vector<Job> jobs;
  for (const fs::path& file : files) {
    for (const Machine& each : machines) {
      jobs.emplace_back([&file, &each] { return times_of(file, each); });
    }
  }
  const auto times = run_in_children(jobs);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& before = times[i * machines.size()];
    for (std::size_t p = 0; p < moved.size(); ++p) {
      if (largest_share(before, times[i * machines.size() + 1 + p]) < kFoundShare) continue;
      determined[moved[p]].push_back(name_of(files[i]));
    }
  }
}

}  // namespace

std::string_view class_of(Param param) {
  const std::string_view key = info(param).key;
  return key.substr(0, key.find('.'));
}

DeterminedBy determined_by(const Machine& machine, std::span<const Param> wanted) {
  const std::vector<fs::path> calibration = files_in("calibration");
  std::vector<fs::path> files = calibration;
  for (fs::path& sweep : files_in("nccl")) files.push_back(std::move(sweep));
  std::vector<Job> jobs;
  for (const fs::path& file : files) {
    jobs.emplace_back([&file, &machine] { return deciding(file, machine); });
  }
  const auto results = run_in_children(jobs);
  DeterminedBy determined;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const double param : results[i]) {
      determined[static_cast<Param>(static_cast<int>(param))].push_back(name_of(files[i]));
    }
  }
  add_in_no_share(calibration, machine, wanted, determined);
  return determined;
}

std::string advice_for(Param param, const DeterminedBy& determined) {
  const auto found = determined.find(param);
  if (found == determined.end()) {
    return "no calibration scenario here depends on it enough: give it by hand";
  }
  std::vector<std::string> files = found->second;
  const std::size_t more = files.size() - std::min(files.size(), kMostNamed);
  files.resize(files.size() - more);
  std::string text = fmt::format("{}", fmt::join(files, " or "));
  if (more > 0) text += fmt::format(" or {} more", more);
  return text;
}

}  // namespace foretrace
