// The only way to read a file that a user names: plain files up to a limit, each remembered, so
// that no command writes over what it read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <tl/expected.hpp>

namespace foretrace {

/// Of scenarios, machine files, logs, tables.
inline constexpr std::size_t kLargestText = std::size_t{16} << 20;

/// The whole file; or why not, as the end of "FILE: ": missing, a directory, a fifo or device, or
/// longer than `most` bytes. A shipped file is found by its name in the repository, too.
tl::expected<std::string, std::string> read_plain_file(const std::filesystem::path& file,
                                                       std::size_t most);

/// The same; throws UsageError naming the file.
std::string read_text_file(const std::filesystem::path& file, std::size_t most = kLargestText);

/// All that standard input has; throws UsageError where that is more than `most` bytes.
std::string read_standard_input(std::size_t most = kLargestText);

/// For a file that is not there: "did you mean 'scenarios/streams/small_kernels.yaml'?", one of its
/// directory or a shipped scenario with a name like it; empty when there is none.
std::string similar_file(const std::filesystem::path& file);

/// Whether this process has read the file, by this name or another, as it is now.
bool is_input(const std::filesystem::path& file);

}  // namespace foretrace
