#include "sim/applications/fit/program.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> candidates(const LoadedTimeline& measured) {
  const fs::path named = measured.timeline.origin.file;
  std::vector<fs::path> files{named};
  const fs::path& source = data_directory();
  if (named.is_relative()) files.push_back(source / named);
  const std::string text = named.string();
  if (const auto at = text.rfind("/scenarios/"); at != std::string::npos) {
    files.push_back(source / text.substr(at + 1));
  }
  fs::path beside = fs::absolute(measured.file);
  for (int level = 0; level < 4; ++level) {
    beside = beside.parent_path();
    files.push_back(beside / named.filename());
  }
  std::erase_if(files, [](const fs::path& file) { return !fs::is_regular_file(file); });
  return files;
}

/// "ranks=3 small=48B"
ParameterValues noted(const std::string& text) {
  ParameterValues values;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals != std::string::npos) values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return values;
}

/// "3 x NVIDIA H200" -> 3
int gpus_of(const std::string& machine) {
  int count = 0;
  std::from_chars(machine.data(), machine.data() + machine.size(), count);
  return count;
}

/// A measurement that notes none was made with the scenario's own, or is a sweep over so many GPUs
/// with sizes that divide evenly.
std::vector<ParameterValues> possible_parameters(const LoadedTimeline& measured) {
  const auto& versions = measured.timeline.origin.versions;
  if (const auto found = versions.find("parameters"); found != versions.end()) {
    return {noted(found->second)};
  }
  const int gpus = gpus_of(measured.timeline.origin.machine);
  if (gpus < 2) return {{}};
  const auto whole = [&](std::int64_t share, std::int64_t most) {
    while (2 * share * gpus <= most) share *= 2;
    return share * gpus;
  };
  const std::string ranks = std::to_string(gpus);
  return {{},
          {{"ranks", ranks}},
          {{"ranks", ranks},
           {"small", fmt::format("{}B", whole(4, 64))},
           {"large", fmt::format("{}KiB", whole(64, 8 * 1024))}}};
}

}  // namespace

std::optional<Program> program_of(const LoadedTimeline& measured) {
  for (const fs::path& file : candidates(measured)) {
    const std::string text = read_text_file(file);
    for (const ParameterValues& parameters : possible_parameters(measured)) {
      auto read = read_scenario(text, file.string(), parameters);
      if (read && read->program.hash == measured.timeline.origin.program_hash) {
        return std::move(read->program);
      }
    }
  }
  return std::nullopt;
}

}  // namespace foretrace
