// How deep JSON goes: to read, copy or print it takes a stack frame for each level.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foretrace {

/// More than any file has that this project, or a tool whose files it reads, writes.
inline constexpr std::size_t kDeepestJson = 64;

/// Brackets in one another, outside of strings; of text that is no JSON at least as many as a
/// parser opens.
std::size_t json_depth(std::string_view text);

/// Throws UsageError, which begins with `where`, for what is deeper than kDeepestJson.
void refuse_deep_json(std::string_view text, const std::string& where);

}  // namespace foretrace
