#include "reports/timeline/temporary_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDigits = "XXXXXX";  // as mkdtemp() replaces them

/// A descriptor of the directory itself, never of one that a link names; negative: there is none.
int opened_directory(const fs::path& directory) {
  return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Ours, and nobody holds its lock. Where the file system has no locks, nothing is.
bool is_left_behind(int directory) {
  struct stat status {};
  return ::fstat(directory, &status) == 0 && status.st_uid == ::geteuid() &&
         ::flock(directory, LOCK_EX | LOCK_NB) == 0;
}

void remove_left_behind(const fs::path& where, const std::string& begin) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{where, none}) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || name.size() != begin.size() + kDigits.size()) continue;
    const int directory = opened_directory(entry.path());
    if (directory < 0) continue;
    if (is_left_behind(directory)) fs::remove_all(entry.path(), none);
    ::close(directory);
  }
}

/// Whether `directory` is still there: another process may have taken it for one left behind before
/// it was locked.
bool is_there(int directory) {
  struct stat status {};
  return ::fstat(directory, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string_view kind) {
  const fs::path where = fs::temp_directory_path();
  const std::string begin = fmt::format("foretrace-{}-", kind);
  remove_left_behind(where, begin);
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::string name = (where / (begin + std::string{kDigits})).string();
    if (::mkdtemp(name.data()) == nullptr) break;
    lock_ = opened_directory(name);
    if (lock_ < 0) continue;
    (void)::flock(lock_, LOCK_SH);  // not every file system can
    if (is_there(lock_)) {
      path_ = fs::canonical(name);
      return;
    }
    ::close(lock_);
  }
  throw IoError{fmt::format("{}: a directory cannot be made there", where.string())};
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code none;
  fs::remove_all(path_, none);
  ::close(lock_);
}

}  // namespace foretrace
