// Several measurements of one program (process launches on one machine or on several) as one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// All samples of `parts`, in their order; process launches are numbered through, so that figures
/// know how many there were. Everything else (spans, versions, machine) is the last part's.
/// Throws UsageError when they are of different programs, or one is a prediction or did not
/// complete.
Timeline merge_starts(std::vector<Timeline> parts);

/// Merges what is measured below each of `roots` into `output`, one directory for each program: at
/// the place it has below the last root that has it. The environments of their starts go to
/// OUTPUT/environments, from environment.json of the earlier form (convert.h), too. A program that
/// cannot be joined is left out, and said; so is a start that did not complete, beside others of
/// its program that did. Throws UsageError when nothing is left.
struct MergedRuns {
  std::vector<std::filesystem::path> written;  ///< directories
  std::vector<std::string> left_out;           ///< why, each
};
MergedRuns merge_runs(const std::vector<std::filesystem::path>& roots,
                      const std::filesystem::path& output);

}  // namespace foretrace
