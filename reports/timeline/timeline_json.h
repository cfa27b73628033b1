// timeline.json, the contract between executors, reports and other people's scripts: described by
// timeline.schema.json, integers in nanoseconds, spans and flows as rows of numbers under named
// columns. The writer streams and its bytes depend on the timeline only.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reports/timeline/timeline.h"
#include "reports/timeline/write_file.h"

namespace foretrace {

/// Raised by a breaking change; readers refuse other versions and ignore unknown keys.
inline constexpr int kTimelineSchemaVersion = 1;

/// File names within a run's directory.
inline constexpr const char* kPredictedFile = "predicted.timeline.json";
inline constexpr const char* kMeasuredFile = "measured.timeline.json";

/// As write_file does. Throws IoError, UsageError.
void write_timeline(const Timeline& timeline, const std::filesystem::path& file,
                    Over over = Over::NoInput);
void write_timeline(const Timeline& timeline, std::ostream& out);
/// One of its "ops".
nlohmann::ordered_json op_row_json(const OpRow& op, std::size_t id);

/// Throws UsageError naming the file and the reason: missing, no plain file, larger than 512 MiB,
/// not JSON, another kind of file, another schema version, no program hash, or what
/// timeline_check.h says of it.
Timeline read_timeline(const std::filesystem::path& file);
/// The same of a text; `name` is what messages call it.
Timeline parse_timeline(std::string_view text, const std::string& name);

}  // namespace foretrace
