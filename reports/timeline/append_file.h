// A file of lines that grows, each line on the disk before the next is begun: what was appended
// stays when the process is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace foretrace {

class AppendedFile {
 public:
  /// Opens or makes the file, and keeps others from appending to it as long as this lives: what is
  /// read of it from now on stays as it is. Throws UsageError when another process has it, IoError
  /// when it fails.
  explicit AppendedFile(const std::filesystem::path& file);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// Cuts it to its first bytes: a line that its process did not finish. Throws IoError.
  void keep(std::uintmax_t bytes);
  /// `line` without its end. Throws IoError.
  void append(std::string_view line);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// A directory's results are one process' to write as long as this lives: it has a file there,
/// which is gone behind it.
class OwnDirectory {
 public:
  /// Throws UsageError when another process has it, IoError when it fails.
  OwnDirectory(const std::filesystem::path& directory, std::string_view name);
  ~OwnDirectory();
  OwnDirectory(const OwnDirectory&) = delete;
  OwnDirectory& operator=(const OwnDirectory&) = delete;

 private:
  std::filesystem::path file_;
  AppendedFile lock_;
};

/// Whether a process has the file to append to it; Unknown where the file system has no locks.
enum class Appending : std::uint8_t { Yes, No, Unknown };
Appending is_appended_to(const std::filesystem::path& file);

}  // namespace foretrace
