#include "reports/compare/run_scenario.h"

#include <fmt/format.h>

#include "reports/timeline/origin.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {

std::filesystem::path find_scenario(const LoadedTimeline& loaded) {
  const std::filesystem::path named = loaded.timeline.origin.file;
  if (loaded.timeline.origin.program_hash == kCapturedHash) {
    throw UsageError{fmt::format(
        "{}: was captured, and a scenario is simulated\n  hint: foretrace import {} -o RUN/ "
        "--scenario step.yaml writes both",
        loaded.file.string(), named.string())};
  }
  const auto is_there = [&](const std::filesystem::path& file) {
    return !named.empty() && std::filesystem::is_regular_file(file);
  };
  if (is_there(named)) return named;
  if (is_there(data_directory() / named)) return data_directory() / named;
  std::filesystem::path beside = std::filesystem::absolute(loaded.file);
  for (int level = 0; level < 4; ++level) {
    beside = beside.parent_path();
    if (is_there(beside / named.filename())) return beside / named.filename();
  }
  throw UsageError{
      fmt::format("{}: its scenario '{}' is not found from here\n  hint: name it with "
                  "--scenario FILE",
                  loaded.file.string(), named.string())};
}

void check_same_program(const Program& program, const LoadedTimeline& loaded) {
  const Origin& origin = loaded.timeline.origin;
  if (loaded.timeline.serving) {
    throw UsageError{
        fmt::format("{}: a run of requests, which are no program\n  hint: 'foretrace report', "
                    "'compare', and 'export --to perfetto', 'kineto' or 'csv' take it",
                    loaded.file.string())};
  }
  if (program.hash == origin.program_hash) {
    if (has_ops_of(loaded.timeline, op_rows(program))) return;
    throw UsageError{fmt::format("{}: its operations are not those of {}, whose hash it has",
                                 loaded.file.string(), program.file)};
  }
  throw UsageError{fmt::format(
      "{} is of another program than {}:\n"
      "  timeline: scenario '{}', program hash {}\n"
      "  file:     scenario '{}', program hash {}\n"
      "  hint: it changed since, or ran with other parameters; give those with --set NAME=VALUE",
      loaded.file.string(), program.file, origin.scenario, origin.program_hash, program.name,
      program.hash)};
}

}  // namespace foretrace
