// A directory for files that only children of a command read. It goes with its owner; what a killed
// one left goes when the next of its kind is made.
#pragma once

#include <filesystem>
#include <string_view>

namespace foretrace {

class TemporaryDirectory {
 public:
  /// In the system's directory for temporary files, only its user's; `kind` is in its name. Throws
  /// IoError.
  explicit TemporaryDirectory(std::string_view kind);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< shared by forks; programs that are run have it not
};

}  // namespace foretrace
