// A file of lines that grows, each line on the disk before the next is begun: what was appended
// stays when the process is killed.
#pragma once

#include <filesystem>
#include <string_view>

namespace foretrace {

class AppendedFile {
 public:
  /// Opens or makes the file, cuts it to its first `keep` bytes, and keeps others from appending to
  /// it at the same time. Throws UsageError when another process has it, IoError when it fails.
  AppendedFile(const std::filesystem::path& file, std::uintmax_t keep);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// `line` without its end. Throws IoError.
  void append(std::string_view line);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace foretrace
