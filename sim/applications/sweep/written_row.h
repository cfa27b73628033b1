// What a row of a sweep's file is: other programs and people write such files, too.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace foretrace::sweep {

/// The key of a row whose point may pass when it is tried again: how often it failed.
inline constexpr const char* kTries = "tries";

/// Whether a sweep with these axes (as its file's first line has them) writes such a row: each key
/// once, a value for every axis, and regions with numbers or an error.
bool is_written_row(const nlohmann::ordered_json& row, const nlohmann::ordered_json& axes);

}  // namespace foretrace::sweep
