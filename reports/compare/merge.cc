#include "reports/compare/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "reports/compare/convert.h"
#include "reports/timeline/environments.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

std::uint32_t starts_of(const Timeline& timeline) {
  std::uint32_t starts = timeline.regions.empty() ? 0 : 1;
  for (const RegionSamples& row : timeline.regions) {
    for (const std::uint32_t start : row.starts) starts = std::max(starts, start + 1);
  }
  return starts;
}

void check_part(const Timeline& part, const Timeline& last) {
  const Origin& origin = part.origin;
  if (!origin.measured) {
    throw UsageError{fmt::format("{}: a prediction is not a process start", origin.scenario)};
  }
  if (origin.program_hash != last.origin.program_hash) {
    throw UsageError{fmt::format("{} and {} are of different programs ({}, {})", origin.scenario,
                                 last.origin.scenario, origin.program_hash,
                                 last.origin.program_hash)};
  }
  if (part.outcome.kind != Outcome::Kind::Completed) {
    throw UsageError{fmt::format("{}: a start that did not complete", origin.scenario)};
  }
}

struct Measured {
  fs::path file;
  fs::path place;  ///< of its directory, below its root
  Timeline timeline;
};

std::vector<Measured> measured_below(const fs::path& root) {
  if (!fs::is_directory(root)) {
    throw UsageError{fmt::format("{}: no such directory", root.string())};
  }
  std::vector<Measured> found;
  for (const auto& entry : fs::recursive_directory_iterator{root}) {
    if (entry.path().filename() != kMeasuredFile) continue;
    found.push_back({entry.path(), fs::relative(entry.path().parent_path(), root),
                     read_timeline(entry.path())});
  }
  std::ranges::sort(found, {}, &Measured::file);
  return found;
}

/// The environments that the part's starts refer to, below `output` as well; those of a part of
/// the earlier form are taken from environment.json.
void join_environments(Measured& part, const fs::path& output) {
  take_old_environment(part.timeline, part.file, output);
  for (const ProcessStart& start : part.timeline.origin.starts) {
    const auto file = find_environment(part.file, start.environment);
    const fs::path place = output / "environments" / (start.environment + ".json");
    if (!file || fs::exists(place)) continue;
    fs::create_directories(place.parent_path());
    fs::copy_file(*file, place);
  }
}

/// A run may carry its scenario.
void copy_scenarios(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator{from}) {
    if (entry.path().extension() != ".yaml" || fs::equivalent(from, to)) continue;
    fs::copy_file(entry.path(), to / entry.path().filename(), fs::copy_options::overwrite_existing);
  }
}

}  // namespace

Timeline merge_starts(std::vector<Timeline> parts) {
  FORETRACE_CHECK(!parts.empty(), "there is something to merge");
  for (const Timeline& part : parts) check_part(part, parts.back());
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;  // op, instance, process
  std::vector<RegionSamples> rows;
  std::vector<ProcessStart> starts;
  std::map<Key, std::size_t> at;
  std::uint32_t before = 0;
  for (const Timeline& part : parts) {
    for (const RegionSamples& row : part.regions) {
      const auto [found, is_new] = at.try_emplace({row.op, row.instance, row.process}, rows.size());
      if (is_new) {
        rows.push_back(row);
        rows.back().samples_ns.clear();
        rows.back().starts.clear();
      }
      RegionSamples& into = rows[found->second];
      for (std::size_t i = 0; i < row.samples_ns.size(); ++i) {
        into.samples_ns.push_back(row.samples_ns[i]);
        into.starts.push_back(before + (i < row.starts.size() ? row.starts[i] : 0));
      }
      if (row.traced_ns) into.traced_ns = row.traced_ns;
    }
    for (ProcessStart start : part.origin.starts) {
      start.start += before;
      starts.push_back(std::move(start));
    }
    before += starts_of(part);
  }
  Timeline merged = std::move(parts.back());
  merged.regions = std::move(rows);
  merged.origin.starts = std::move(starts);
  return merged;
}

std::vector<fs::path> merge_runs(const std::vector<fs::path>& roots, const fs::path& output) {
  std::vector<Measured> all;
  for (const fs::path& root : roots) {
    for (Measured& measured : measured_below(root)) all.push_back(std::move(measured));
  }
  std::map<std::string, std::vector<const Measured*>> by_program;
  for (Measured& measured : all) {
    join_environments(measured, output);
    by_program[measured.timeline.origin.program_hash].push_back(&measured);
  }
  if (by_program.empty()) throw UsageError{fmt::format("no {} below these", kMeasuredFile)};
  std::set<fs::path> places;
  std::vector<fs::path> written;
  for (const auto& [hash, parts] : by_program) {
    const fs::path directory = (output / parts.back()->place).lexically_normal();
    if (!places.insert(directory).second) {
      throw UsageError{fmt::format(
          "two programs would go to {}\n  hint: measure one of them anew, or leave it out",
          directory.string())};
    }
    std::vector<Timeline> timelines;
    for (const Measured* part : parts) timelines.push_back(part->timeline);
    const Timeline merged = merge_starts(std::move(timelines));
    fs::create_directories(directory);
    write_timeline(merged, directory / kMeasuredFile);
    copy_scenarios(parts.back()->file.parent_path(), directory);
    written.push_back(directory);
  }
  return written;
}

}  // namespace foretrace
