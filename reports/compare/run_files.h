// Finds the timelines that a command's arguments mean: run directories or timeline files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

struct LoadedTimeline {
  std::filesystem::path file;
  Timeline timeline;
};

/// What one argument holds; at least one of the two.
struct Run {
  std::filesystem::path path;
  std::optional<LoadedTimeline> predicted, measured;
};

/// `path` is a directory with predicted.timeline.json, measured.timeline.json or both, or a
/// timeline file. Throws UsageError when there is none.
Run load_run(const std::filesystem::path& path);

/// Two timelines to hold against each other; the second is the reference.
struct TimelinePair {
  LoadedTimeline first, second;
};

/// RUN/: its prediction and its measurement.
TimelinePair load_pair(const std::filesystem::path& run);
/// The same of what was read.
TimelinePair pair_of(Run run);
TimelinePair pair_of(Run a, Run b);
/// A/ B/: A's prediction (else its measurement) against B's measurement (else its prediction); a
/// measurement never stands before a prediction.
TimelinePair load_pair(const std::filesystem::path& a, const std::filesystem::path& b);

/// Everything below `roots` that is named *.timeline.json: every prediction paired with every
/// measurement of its program hash, ordered by path.
struct Batch {
  std::vector<TimelinePair> pairs;
  std::vector<std::filesystem::path> alone;  ///< timelines without a partner
};
Batch load_batch(const std::vector<std::filesystem::path>& roots);

}  // namespace foretrace
