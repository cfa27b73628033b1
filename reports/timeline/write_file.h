// The only way to write a file. It appears whole or not at all: written under a new name beside it,
// on the disk, then renamed. Only over plain files: a link's target is written, a device or a pipe
// is written into, and what this process has read is refused.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace foretrace {

enum class Over {
  NoInput,  ///< refuses a file that this process has read
  Anything  ///< renews it: tables in documents, results that grow
};

/// Calls `write` with a stream and keeps what it wrote when all went well. Throws UsageError for a
/// file that is an input, IoError when it cannot be written, and what `write` throws; the file is
/// then as it was.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write,
                Over over = Over::NoInput);
void write_file(const std::filesystem::path& file, std::string_view content,
                Over over = Over::NoInput);

/// Before the work: throws IoError where `file` could not be written, since its directory is not
/// there or takes no files, or since it is a directory itself.
void check_can_write(const std::filesystem::path& file);
/// The same of a directory that make_directory is to make.
void check_can_make(const std::filesystem::path& directory);

/// What a command will write, before its work: throws UsageError where one of them is an input, or
/// where two are one file; else as check_can_write. Empty names are left out.
void check_outputs(const std::vector<std::filesystem::path>& files);

/// Makes the directory and those above it. Throws IoError.
void make_directory(const std::filesystem::path& directory);

/// Whoever writes several files that belong together into one directory takes turns: held until it
/// is destroyed. Where the file system has no locks, nobody waits.
class DirectoryTurn {
 public:
  explicit DirectoryTurn(const std::filesystem::path& directory);
  ~DirectoryTurn();
  DirectoryTurn(const DirectoryTurn&) = delete;
  DirectoryTurn& operator=(const DirectoryTurn&) = delete;

 private:
  int descriptor_;
};

}  // namespace foretrace
