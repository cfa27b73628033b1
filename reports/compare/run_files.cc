#include "reports/compare/run_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

LoadedTimeline load(const fs::path& file) { return {file, read_timeline(file)}; }

std::vector<fs::path> timelines_below(const std::vector<fs::path>& roots) {
  std::vector<fs::path> files;
  for (const fs::path& named : roots) {
    const fs::path root = shipped_file(named);
    if (!fs::is_directory(root)) {
      throw UsageError{fmt::format("{}: no such directory", root.string())};
    }
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().filename().string().ends_with(".timeline.json")) {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

Run load_run(const fs::path& named) {
  const fs::path path = shipped_file(named);
  Run run{.path = path, .predicted = std::nullopt, .measured = std::nullopt};
  if (!fs::is_directory(path)) {
    LoadedTimeline loaded = load(path);
    auto& place = loaded.timeline.origin.measured ? run.measured : run.predicted;
    place = std::move(loaded);
    return run;
  }
  if (fs::exists(path / kPredictedFile)) run.predicted = load(path / kPredictedFile);
  if (fs::exists(path / kMeasuredFile)) run.measured = load(path / kMeasuredFile);
  if (!run.predicted && !run.measured) {
    throw UsageError{fmt::format("{}: neither {} nor {} is there", path.string(), kPredictedFile,
                                 kMeasuredFile)};
  }
  return run;
}

TimelinePair load_pair(const fs::path& path) { return pair_of(load_run(path)); }

TimelinePair pair_of(Run run) {
  const fs::path path = run.path;
  if (!run.predicted || !run.measured) {
    const bool lacks_prediction = !run.predicted;
    throw UsageError{fmt::format(
        "{}: the {} timeline is missing\n  hint: {}, or name the run that has it: A/ B/",
        path.string(), lacks_prediction ? "predicted" : "measured",
        lacks_prediction ? "write it with 'foretrace simulate FILE --machine NAME -o RUN/'"
                         : "write it with 'foretrace-hw measure FILE -o RUN/'")};
  }
  return {std::move(*run.predicted), std::move(*run.measured)};
}

TimelinePair load_pair(const fs::path& a, const fs::path& b) {
  return pair_of(load_run(a), load_run(b));
}

TimelinePair pair_of(Run one, Run other) {
  TimelinePair pair{std::move(one.predicted ? *one.predicted : *one.measured),
                    std::move(other.measured ? *other.measured : *other.predicted)};
  if (pair.first.timeline.origin.measured && !pair.second.timeline.origin.measured) {
    std::swap(pair.first, pair.second);
  }
  return pair;
}

Batch load_batch(const std::vector<fs::path>& roots) {
  std::vector<LoadedTimeline> predicted;
  std::vector<LoadedTimeline> measured;
  for (const fs::path& file : timelines_below(roots)) {
    LoadedTimeline loaded = load(file);
    (loaded.timeline.origin.measured ? measured : predicted).push_back(std::move(loaded));
  }
  Batch batch;
  std::vector<bool> used(measured.size(), false);
  for (const LoadedTimeline& prediction : predicted) {
    bool found = false;
    for (std::size_t m = 0; m < measured.size(); ++m) {
      const std::string& hash = measured[m].timeline.origin.program_hash;
      if (hash != prediction.timeline.origin.program_hash) continue;
      batch.pairs.push_back({prediction, measured[m]});
      used[m] = found = true;
    }
    if (!found) batch.alone.push_back(prediction.file);
  }
  for (std::size_t m = 0; m < measured.size(); ++m) {
    if (!used[m]) batch.alone.push_back(measured[m].file);
  }
  return batch;
}

}  // namespace foretrace
