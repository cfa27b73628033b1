#include "sim/fit/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "scenarios/read/scenario.h"
#include "scenarios/text/data_directory.h"
#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 3;

std::vector<fs::path> calibration_files() {
  std::vector<fs::path> files;
  for (const char* folder : {"calibration", "nccl"}) {
    std::error_code none;
    for (const auto& entry :
         fs::directory_iterator{data_directory() / "scenarios" / folder, none}) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::optional<Param> param_named(std::string_view key) {
  for (std::size_t i = 0; i < kParamCount; ++i) {
    if (info(static_cast<Param>(i)).key == key) return static_cast<Param>(i);
  }
  return {};
}

/// As numbers: what a child sends.
std::vector<double> deciding(const fs::path& file, const Machine& machine) {
  const auto read = read_scenario(read_text_file(file), file.string());
  if (!read || !check_fits(read->program, machine).empty()) return {};
  std::vector<double> params;
  try {
    for (const RegionSamples& region : simulate(read->program, machine).regions) {
      for (const ParameterShare& part : region.decided_by) {
        const auto param = param_named(part.parameter);
        if (param) params.push_back(static_cast<double>(*param));
      }
    }
  } catch (const UsageError&) {
    return {};  // a parameter is missing that this scenario needs
  }
  std::ranges::sort(params);
  const auto again = std::ranges::unique(params);
  params.erase(again.begin(), again.end());
  return params;
}

}  // namespace

std::string_view class_of(Param param) {
  const std::string_view key = info(param).key;
  return key.substr(0, key.find('.'));
}

DeterminedBy determined_by(const Machine& machine) {
  const std::vector<fs::path> files = calibration_files();
  std::vector<Job> jobs;
  for (const fs::path& file : files) {
    jobs.emplace_back([&file, &machine] { return deciding(file, machine); });
  }
  const auto results = run_in_children(jobs);
  DeterminedBy determined;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = fs::relative(files[i], data_directory()).generic_string();
    for (const double param : results[i]) {
      determined[static_cast<Param>(static_cast<int>(param))].push_back(name);
    }
  }
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
