#include "reports/compare/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/timeline/environments.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/text/data_directory.h"
#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

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

void take_old_environment(Timeline& timeline, const fs::path& result, const fs::path& root) {
  if (!timeline.origin.starts.empty() || !has_old_environment(result)) return;
  std::ifstream in{old_environment(result)};
  const nlohmann::json document = nlohmann::json::parse(in, nullptr, false);
  try {
    for (const nlohmann::json& start : document.at("starts")) {
      const nlohmann::json machine = start.value("machine", nlohmann::json::object());
      timeline.origin.starts.push_back(
          {start.value("start", 0U), start.value("date", ""), start.value("label", ""),
           store_environment(recorded_environment(machine), root), gpu_states(machine)});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError{fmt::format("{}: not what foretrace-hw writes: {}",
                                 old_environment(result).string(), error.what())};
  }
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
    take_old_environment(timeline, result, root);
    timeline.origin.file = file;
    write_timeline(timeline, result);
    fs::remove(old_environment(result));
    changed.push_back(result);
  }
  return changed;
}

}  // namespace foretrace
