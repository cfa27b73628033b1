#include "reports/timeline/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw IoError{fmt::format("{}: {}", file.string(), std::generic_category().message(errno))};
}

bool is_still(int descriptor, const std::filesystem::path& file) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

AppendedFile::AppendedFile(const std::filesystem::path& file) : file_{file} {
  while (true) {
    descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (descriptor_ < 0) fail(file_);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw UsageError{fmt::format("{}: another process is writing it", file.string())};
    }
    if (is_still(descriptor_, file)) return;
    ::close(descriptor_);  // who had it has put another one in its place
  }
}

AppendedFile::~AppendedFile() { ::close(descriptor_); }

void AppendedFile::keep(std::uintmax_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail(file_);
}

void AppendedFile::append(std::string_view line) {
  const std::string whole = fmt::format("{}\n", line);
  for (std::string_view left = whole; !left.empty();) {  // a full disk takes a part at first
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(file_);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(descriptor_) != 0) fail(file_);
}

OwnDirectory::OwnDirectory(const std::filesystem::path& directory, std::string_view name)
    : file_{directory / name}, lock_{file_} {}

OwnDirectory::~OwnDirectory() { ::unlink(file_.c_str()); }  // before it is another one's

Appending is_appended_to(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return errno == ENOENT ? Appending::No : Appending::Unknown;
  const int locked = ::flock(descriptor, LOCK_SH | LOCK_NB);
  const int why = errno;
  ::close(descriptor);
  if (locked == 0) return Appending::No;
  return why == EWOULDBLOCK ? Appending::Yes : Appending::Unknown;
}

}  // namespace foretrace
