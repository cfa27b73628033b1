#include "reports/compare/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/timeline/environments.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/values/json_depth.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMostStarts = 1'000'000;

fs::path old_environment(const fs::path& result) {
  return result.parent_path() / "environment.json";
}

/// "/home/me/foretrace/scenarios/a/b.yaml", on whatever computer, as "scenarios/a/b.yaml".
std::string path_in_repository(const std::string& file) {
  const auto place = file.rfind("/scenarios/");
  if (place == std::string::npos) return scenario_path(file);
  const std::string shipped = file.substr(place + 1);
  return fs::is_regular_file(data_directory() / shipped) ? shipped : file;
}

}  // namespace

bool has_old_environment(const fs::path& result) {
  return fs::is_regular_file(old_environment(result));
}

OldStarts parse_old_environment(const std::string& text, const std::string& name) {
  OldStarts old;
  refuse_deep_json(text, name);
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    for (const nlohmann::json& start : document.at("starts")) {
      const nlohmann::json machine = start.value("machine", nlohmann::json::object());
      const nlohmann::json number = start.value("start", nlohmann::json(0U));
      if (!number.is_number_unsigned() || number > kMostStarts) {
        throw UsageError{fmt::format("{}: {} is not the number of a start", name, number.dump())};
      }
      old.environments.push_back(recorded_environment(machine));
      old.starts.push_back({number.get<std::uint32_t>(), start.value("date", ""),
                            start.value("label", ""), environment_key(old.environments.back()),
                            gpu_states(machine)});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError{
        fmt::format("{}: not what foretrace-hw writes: {}", name, json_reason(error.what()))};
  }
  return old;
}

std::vector<nlohmann::json> take_old_environment(Timeline& timeline, const fs::path& result) {
  if (!timeline.origin.starts.empty() || !has_old_environment(result)) return {};
  const fs::path file = old_environment(result);
  OldStarts old = parse_old_environment(read_text_file(file), file.string());
  timeline.origin.starts = std::move(old.starts);
  return std::move(old.environments);
}

std::vector<fs::path> convert_runs(const fs::path& root) {
  if (!fs::is_directory(root)) {
    throw UsageError{fmt::format("{}: no such directory", root.string())};
  }
  std::vector<fs::path> results;
  for (const auto& entry : fs::recursive_directory_iterator{root}) {
    if (entry.path().filename() == kMeasuredFile) results.push_back(entry.path());
  }
  std::ranges::sort(results);
  std::vector<fs::path> changed;
  for (const fs::path& result : results) {
    Timeline timeline = read_timeline(result);
    const std::string file = path_in_repository(timeline.origin.file);
    if (!has_old_environment(result) && file == timeline.origin.file) continue;
    for (const nlohmann::json& one : take_old_environment(timeline, result)) {
      store_environment(one, root);
    }
    timeline.origin.file = file;
    write_timeline(timeline, result, Over::Anything);
    fs::remove(old_environment(result));
    changed.push_back(result);
  }
  return changed;
}

}  // namespace foretrace
