#include "reports/timeline/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw IoError{fmt::format("{}: {}", file.string(), std::generic_category().message(errno))};
}

}  // namespace

AppendedFile::AppendedFile(const std::filesystem::path& file, std::uintmax_t keep) : file_{file} {
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(file_);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw UsageError{fmt::format("{}: another process is writing it", file.string())};
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(keep)) != 0) {
    ::close(descriptor_);
    fail(file_);
  }
}

AppendedFile::~AppendedFile() { ::close(descriptor_); }

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

}  // namespace foretrace
