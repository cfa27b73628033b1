// Files appear whole or not at all: written under NAME.tmp, then renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>

namespace foretrace {

/// Calls `write` with a stream on FILE.tmp and renames it when all went well; otherwise removes it
/// and throws IoError (or what `write` threw).
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace foretrace
