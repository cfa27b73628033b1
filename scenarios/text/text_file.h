// A user's text file as a string.
#pragma once

#include <filesystem>
#include <string>

namespace foretrace {

/// Longer texts are refused by parse_yaml, so no more than one byte beyond this is read: /dev/zero
/// ends as well.
inline constexpr std::size_t kLargestText = std::size_t{16} << 20;

/// Throws UsageError naming the file when it is missing, a directory or unreadable.
std::string read_text_file(const std::filesystem::path& file);

}  // namespace foretrace
