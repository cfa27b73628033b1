// timeline.json, the contract between executors, reports and other people's scripts: described by
// timeline.schema.json, integers in nanoseconds, spans and flows as rows of numbers under named
// columns. The writer streams and its bytes depend on the timeline only.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// Raised by a breaking change; readers refuse other versions and ignore unknown keys.
inline constexpr int kTimelineSchemaVersion = 1;

/// File names within a run's directory.
inline constexpr const char* kPredictedFile = "predicted.timeline.json";
inline constexpr const char* kMeasuredFile = "measured.timeline.json";

/// Writes FILE.tmp, then renames it. Throws IoError.
void write_timeline(const Timeline& timeline, const std::filesystem::path& file);
void write_timeline(const Timeline& timeline, std::ostream& out);

/// Throws UsageError naming the file and the reason: missing, not JSON, another kind of file,
/// another schema version, no program hash, an index that points nowhere.
Timeline read_timeline(const std::filesystem::path& file);

}  // namespace foretrace
