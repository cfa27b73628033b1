#include "reports/compare/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "reports/compare/convert.h"
#include "reports/timeline/environments.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

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
    throw UsageError{fmt::format("{}: a prediction is not a process launch", origin.scenario)};
  }
  if (origin.program_hash != last.origin.program_hash) {
    throw UsageError{fmt::format("{} and {} are of different programs ({}, {})", origin.scenario,
                                 last.origin.scenario, origin.program_hash,
                                 last.origin.program_hash)};
  }
  if (!has_ops_of(part, last.ops)) {
    throw UsageError{fmt::format("{} and {} have one program hash ({}) and other operations",
                                 origin.scenario, last.origin.scenario, origin.program_hash)};
  }
  if (part.outcome.kind != Outcome::Kind::Completed) {
    throw UsageError{fmt::format("{}: a start that did not complete", origin.scenario)};
  }
}

struct Measured {
  fs::path file;
  fs::path place;  ///< of its directory, below its root
  Timeline timeline;
  std::vector<nlohmann::json> old_environments;  ///< of environment.json beside it
};

std::vector<Measured> measured_below(const fs::path& root, std::vector<std::string>& left_out) {
  if (!fs::is_directory(root)) {
    throw UsageError{fmt::format("{}: no such directory", root.string())};
  }
  std::vector<Measured> found;
  for (const auto& entry : fs::recursive_directory_iterator{root}) {
    if (entry.path().filename() != kMeasuredFile) continue;
    try {
      Measured one;
      one.file = entry.path();
      one.place = fs::relative(entry.path().parent_path(), root);
      one.timeline = read_timeline(one.file);
      one.old_environments = take_old_environment(one.timeline, one.file);
      found.push_back(std::move(one));
    } catch (const UsageError& error) {
      left_out.emplace_back(error.what());
    }
  }
  std::ranges::sort(found, {}, &Measured::file);
  return found;
}

/// The environments that the part's starts refer to, below `output` as well.
void join_environments(const Measured& part, const fs::path& output) {
  for (const auto& environment : part.old_environments) store_environment(environment, output);
  for (const ProcessStart& start : part.timeline.origin.starts) {
    std::vector<std::string> keys = start.environments;
    keys.push_back(start.environment);
    for (const std::string& key : keys) {
      const auto file = find_environment(part.file, key);
      const fs::path place = output / "environments" / (key + ".json");
      if (!file || fs::exists(place)) continue;
      make_directory(place.parent_path());
      write_file(place, read_text_file(*file));
    }
  }
}

/// A run may carry its scenario.
void copy_scenarios(const fs::path& from, const fs::path& to) {
  for (const auto& entry : fs::directory_iterator{from}) {
    const fs::path copy = to / entry.path().filename();
    if (entry.path().extension() != ".yaml" || !entry.is_regular_file()) continue;
    if (std::error_code none; fs::equivalent(entry.path(), copy, none)) continue;
    write_file(copy, read_text_file(entry.path()), Over::Anything);
  }
}

bool has_same_samples(const Timeline& a, const Timeline& b) {
  std::size_t samples = 0;
  const bool is_same = std::ranges::equal(a.regions, b.regions, [&](const auto& x, const auto& y) {
    samples += x.samples_ns.size();
    return x.op == y.op && x.instance == y.instance && x.samples_ns == y.samples_ns;
  });
  // Few figures may be equal by chance, and without regions there is nothing to count twice.
  constexpr std::size_t kEnough = 5;
  const bool is_dated = !a.origin.starts.empty() && samples > 0;
  return is_same && a.origin.starts == b.origin.starts && (is_dated || samples >= kEnough);
}

/// A measurement that is named twice, or was copied, would count twice.
void refuse_same(const std::vector<const Measured*>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      std::error_code none;
      if (!fs::equivalent(parts[i]->file, parts[k]->file, none) &&
          !has_same_samples(parts[i]->timeline, parts[k]->timeline)) {
        continue;
      }
      throw UsageError{
          fmt::format("{} and {} are the same measurement: its samples would count twice\n"
                      "  hint: leave one out",
                      parts[k]->file.string(), parts[i]->file.string())};
    }
  }
}

/// What is merged of one program, and where it goes.
struct Merged {
  fs::path directory;
  fs::path scenarios;  ///< where they are copied from
  Timeline timeline;
};

/// The starts that completed, where there are any: the others are said, and take nothing away.
std::vector<const Measured*> completed(const std::vector<const Measured*>& parts,
                                       std::vector<std::string>& left_out) {
  const auto is_complete = [](const Measured* part) {
    return part->timeline.outcome.kind == Outcome::Kind::Completed;
  };
  std::vector<const Measured*> whole;
  std::ranges::copy_if(parts, std::back_inserter(whole), is_complete);
  if (whole.empty()) return parts;
  for (const Measured* part : parts) {
    if (is_complete(part)) continue;
    left_out.push_back(
        fmt::format("{}: a start of '{}' that did not complete; the other {} joined",
                    part->file.string(), part->timeline.origin.scenario,
                    whole.size() == 1 ? "one is" : fmt::format("{} are", whole.size())));
  }
  return whole;
}

Merged merge_parts(const std::vector<const Measured*>& parts, const fs::path& output) {
  refuse_same(parts);
  std::vector<Timeline> timelines;
  for (const Measured* part : parts) timelines.push_back(part->timeline);
  Merged merged{(output / parts.back()->place).lexically_normal(), parts.back()->file.parent_path(),
                merge_starts(std::move(timelines))};
  if (is_input(merged.directory / kMeasuredFile)) {
    throw UsageError{fmt::format("{} is merged, and would be written over\n  hint: another -o",
                                 (merged.directory / kMeasuredFile).string())};
  }
  return merged;
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

MergedRuns merge_runs(const std::vector<fs::path>& roots, const fs::path& output) {
  MergedRuns merged_runs;
  std::vector<std::string>& left_out = merged_runs.left_out;
  std::vector<Measured> all;
  for (const fs::path& root : roots) {
    for (Measured& measured : measured_below(root, left_out)) all.push_back(std::move(measured));
  }
  std::map<std::string, std::vector<const Measured*>> by_program;
  for (const Measured& one : all) by_program[one.timeline.origin.program_hash].push_back(&one);
  if (by_program.empty() && left_out.empty()) {
    throw UsageError{fmt::format("no {} below these", kMeasuredFile)};
  }
  // Everything is read and joined before anything is written.
  std::map<fs::path, std::vector<Merged>> by_place;
  std::vector<const Measured*> joined;
  for (const auto& [hash, all_parts] : by_program) {
    try {
      const std::vector<const Measured*> parts = completed(all_parts, left_out);
      Merged merged = merge_parts(parts, output);
      const fs::path place = merged.directory;
      by_place[place].push_back(std::move(merged));
      joined.insert(joined.end(), parts.begin(), parts.end());
    } catch (const UsageError& error) {
      left_out.emplace_back(error.what());
    }
  }
  for (const auto& [place, programs] : by_place) {
    if (programs.size() == 1) continue;
    left_out.push_back(fmt::format(
        "two programs would go to {}\n  hint: measure one of them anew, or leave it out",
        place.string()));
  }
  std::erase_if(by_place, [](const auto& entry) { return entry.second.size() > 1; });
  if (by_place.empty()) throw UsageError{fmt::format("{}", fmt::join(left_out, "\n"))};
  for (const Measured* one : joined) join_environments(*one, output);
  for (const auto& [place, programs] : by_place) {
    const Merged& merged = programs.front();
    make_directory(merged.directory);
    write_timeline(merged.timeline, merged.directory / kMeasuredFile);
    copy_scenarios(merged.scenarios, merged.directory);
    merged_runs.written.push_back(merged.directory);
  }
  return merged_runs;
}

}  // namespace foretrace
