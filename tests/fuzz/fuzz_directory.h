// Where readers that take a file find the bytes: a directory of this process in TMPDIR, removed
// when it ends well.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace foretrace::fuzz {

class FuzzDirectory {
 public:
  FuzzDirectory()
      : path_{std::filesystem::temp_directory_path() /
              ("foretrace_fuzz_" + std::to_string(::getpid()))} {
    std::filesystem::create_directories(path_);
  }
  ~FuzzDirectory() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  FuzzDirectory(const FuzzDirectory&) = delete;
  FuzzDirectory& operator=(const FuzzDirectory&) = delete;

  /// A file in it with these bytes and no others.
  std::filesystem::path file(const std::filesystem::path& name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    if (name.has_parent_path()) std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << bytes;
    return path;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline const FuzzDirectory& directory() {
  static const FuzzDirectory once;
  return once;
}

}  // namespace foretrace::fuzz
