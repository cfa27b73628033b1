// A run directory as `foretrace simulate` writes it, for commands that need a prediction first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretrace {

/// What `foretrace simulate FILE --machine MACHINE --with ... -o DIRECTORY` writes, with each of
/// its warnings and notes on stderr, and no answer. Throws UsageError.
void simulate_into(const std::filesystem::path& file, const std::string& machine,
                   const std::vector<std::string>& with, const std::filesystem::path& directory);

}  // namespace foretrace
