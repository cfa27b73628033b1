// Files that may be gzip'ed, as records and tables are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace foretrace {

/// The whole text of a plain file, unpacked where it is gzip'ed; at most `most` bytes unpacked.
/// Throws UsageError naming the file.
std::string read_packed_text_file(const std::filesystem::path& file, std::size_t most);

}  // namespace foretrace
