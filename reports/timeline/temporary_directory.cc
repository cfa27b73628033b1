#include "reports/timeline/temporary_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDigits = "XXXXXX";  // as mkdtemp() replaces them
/// Locked, since who writes a run into the directory locks that itself.
constexpr const char* kOwner = ".owner";

int opened_owner(const fs::path& directory, int flags) {
  return ::open((directory / kOwner).c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/// Ours, and nobody holds its lock. Where the file system has no locks, nothing is.
bool is_left_behind(int owner) {
  struct stat status {};
  return ::fstat(owner, &status) == 0 && status.st_uid == ::geteuid() &&
         ::flock(owner, LOCK_EX | LOCK_NB) == 0;
}

void remove_left_behind(const fs::path& where, const std::string& begin) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{where, none}) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || name.size() != begin.size() + kDigits.size()) continue;
    if (entry.symlink_status(none).type() != fs::file_type::directory) continue;
    const int owner = opened_owner(entry.path(), O_RDONLY);
    if (owner < 0) continue;
    if (is_left_behind(owner)) fs::remove_all(entry.path(), none);
    ::close(owner);
  }
}

/// Whether the file is still there: another process may have taken the directory for one left
/// behind before this was locked.
bool is_there(int owner) {
  struct stat status {};
  return ::fstat(owner, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string_view kind) {
  std::error_code why;
  const fs::path where = fs::temp_directory_path(why);
  if (why) {
    throw UsageError{fmt::format(
        "there is no directory for temporary files: {}\n  hint: TMPDIR names it", why.message())};
  }
  const std::string begin = fmt::format("foretrace-{}-", kind);
  remove_left_behind(where, begin);
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::string name = (where / (begin + std::string{kDigits})).string();
    if (::mkdtemp(name.data()) == nullptr) break;
    lock_ = opened_owner(name, O_RDWR | O_CREAT);
    if (lock_ < 0 && errno == ENOENT) continue;  // taken away at once
    if (lock_ < 0) {
      ::rmdir(name.c_str());
      break;
    }
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
