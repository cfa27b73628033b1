// The only way to read a file that a user names: plain files up to a limit, each remembered, so
// that no command writes over what it read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
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

/// The same file piece by piece, for readers of what is larger than they keep. It is refused as
/// read_text_file() does; as "read" it counts once its end has come.
class FileStream : public std::streambuf {
 public:
  FileStream(const std::filesystem::path& file, std::size_t most);
  ~FileStream() override;
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  /// How it begins, a piece of it at most; nothing is taken.
  std::string_view head();

 protected:
  int_type underflow() override;

 private:
  class Pieces;
  std::unique_ptr<Pieces> pieces_;
};

/// All that standard input has; throws UsageError where that is more than `most` bytes.
std::string read_standard_input(std::size_t most = kLargestText);

/// For a file that is not there: "did you mean 'scenarios/streams/small_kernels.yaml'?", one of its
/// directory or a shipped scenario with a name like it; empty when there is none.
std::string similar_file(const std::filesystem::path& file);

/// Whether this process has read the file, by this name or another, as it is now.
bool is_input(const std::filesystem::path& file);

}  // namespace foretrace
