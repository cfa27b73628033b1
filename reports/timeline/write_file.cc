#include "reports/timeline/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <ostream>
#include <set>
#include <streambuf>
#include <string_view>
#include <system_error>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

IoError cannot_write(const fs::path& file, int code) {
  return IoError{fmt::format("cannot write {}: {}", file.string(),
                             code != 0 ? std::strerror(code) : "the write failed")};
}

/// An open file as a stream's buffer; remembers the first error.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_{descriptor} {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }
  int sync() override {
    const char* at = pbase();
    while (error_ == 0 && at != pptr()) {
      const ssize_t written = ::write(descriptor_, at, static_cast<std::size_t>(pptr() - at));
      if (written >= 0) {
        at += written;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_{};
};

/// Closed at the end, whatever happens; removed unless it was renamed.
struct OpenedFile {
  int descriptor = -1;
  fs::path temporary;  ///< empty: nothing to remove
  explicit OpenedFile(int opened, fs::path name = {})
      : descriptor{opened}, temporary{std::move(name)} {}
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() {
    if (descriptor >= 0) ::close(descriptor);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
};

void write_into(int descriptor, const fs::path& file,
                const std::function<void(std::ostream&)>& write) {
  DescriptorBuffer buffer{descriptor};
  std::ostream out{&buffer};
  write(out);
  out.flush();
  if (!out || buffer.error() != 0) throw cannot_write(file, buffer.error());
}

/// A device, a pipe, a terminal: nothing to replace.
void write_to_special(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  // A pipe that nobody reads is an error at once, not a wait.
  const OpenedFile out{::open(file.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)};
  if (out.descriptor < 0) throw cannot_write(file, errno);
  ::fcntl(out.descriptor, F_SETFL, ::fcntl(out.descriptor, F_GETFL) & ~O_NONBLOCK);
  write_into(out.descriptor, file, write);
}

/// Where a chain of links ends; that file may be missing.
fs::path behind_links(const fs::path& file) {
  constexpr int kMostLinks = 40;  // as Linux has it
  fs::path at = file;
  std::error_code none;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, none)); ++links) {
    if (links == kMostLinks) throw cannot_write(file, ELOOP);
    const fs::path target = fs::read_symlink(at, none);
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return at;
}

constexpr std::string_view kTemporaryBegin = ".foretrace-";
constexpr std::string_view kTemporaryEnd = ".tmp";

/// What a process left that was killed while it wrote: of our names, a day old, and nobody's. A
/// process that still writes holds a lock on its file.
void remove_if_left_behind(const fs::path& file) {
  constexpr std::time_t kDay = 24 * 60 * 60;
  const OpenedFile opened{::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat status {};
  if (opened.descriptor < 0 || ::fstat(opened.descriptor, &status) != 0) return;
  const bool is_old = status.st_mtime < std::time(nullptr) - kDay;
  if (!S_ISREG(status.st_mode) || !is_old || status.st_uid != ::geteuid()) return;
  if (::flock(opened.descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(file.c_str());
}

/// Once for each directory that this process writes to.
void remove_left_behind(const fs::path& directory) {
  static std::mutex mutex;
  static std::set<fs::path> seen;
  const std::scoped_lock lock{mutex};
  if (!seen.insert(directory).second) return;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{directory.empty() ? "." : directory, none}) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kTemporaryBegin) && name.ends_with(kTemporaryEnd)) {
      remove_if_left_behind(entry.path());
    }
  }
}

OpenedFile create_beside(const fs::path& target, const fs::path& file) {
  static std::atomic<unsigned> count{0};
  remove_left_behind(target.parent_path());
  constexpr int kMostTries = 1000;
  for (int tries = 0;; ++tries) {
    const fs::path name = target.parent_path() / fmt::format("{}{}-{}{}", kTemporaryBegin,
                                                             ::getpid(), count++, kTemporaryEnd);
    const int made = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made >= 0) {
      (void)::flock(made, LOCK_SH | LOCK_NB);  // not every file system can
      return OpenedFile{made, name};
    }
    if (errno != EEXIST || tries == kMostTries) throw cannot_write(file, errno);
  }
}

void sync_directory(const fs::path& directory) {
  const OpenedFile opened{
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.descriptor >= 0) (void)::fsync(opened.descriptor);  // not every file system can
}

void refuse_input(const fs::path& file) {
  if (!is_input(file)) return;
  throw UsageError{
      fmt::format("{}: this command reads it, and would write over it\n  hint: give another name "
                  "for the result",
                  file.string())};
}

/// Of a file to be written, and of one that is not there yet.
bool are_one_file(const fs::path& one, const fs::path& other) {
  std::error_code none;
  if (fs::exists(one, none) && fs::exists(other, none)) {
    return fs::is_regular_file(one, none) && fs::equivalent(one, other, none);
  }
  const fs::path first = fs::weakly_canonical(fs::absolute(one, none), none);
  return !first.empty() && first == fs::weakly_canonical(fs::absolute(other, none), none);
}

/// Throws for a directory in which no file can be made.
void check_takes_files(const fs::path& directory, const fs::path& file) {
  const fs::path where = directory.empty() ? fs::path{"."} : directory;
  std::error_code none;
  if (!fs::exists(where, none)) {
    throw IoError{fmt::format("cannot write {}: there is no directory {}\n  hint: mkdir -p {}",
                              file.string(), where.string(), where.string())};
  }
  if (!fs::is_directory(where, none)) throw cannot_write(file, ENOTDIR);
  if (::access(where.c_str(), W_OK | X_OK) != 0) throw cannot_write(file, errno);
}

}  // namespace

void check_can_write(const fs::path& file) {
  std::error_code none;
  const fs::file_status status = fs::status(file, none);
  if (fs::is_directory(status)) throw cannot_write(file, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;  // a device or a pipe
  check_takes_files(behind_links(file).parent_path(), file);
}

void check_can_make(const fs::path& directory) {
  std::error_code none;
  // "RUN/" is in RUN's parent.
  fs::path at = directory.has_filename() ? directory : directory.parent_path();
  while (!at.empty() && !fs::exists(at, none)) at = at.parent_path();
  check_takes_files(at, directory);
}

void check_outputs(const std::vector<fs::path>& files) {
  for (auto file = files.begin(); file != files.end(); ++file) {
    if (file->empty()) continue;
    refuse_input(*file);
    const auto same = [&](const fs::path& other) {
      return !other.empty() && are_one_file(*file, other);
    };
    if (std::any_of(files.begin(), file, same)) {
      throw UsageError{fmt::format(
          "{}: two results would be written to it\n  hint: give each a name", file->string())};
    }
    check_can_write(*file);
  }
}

void write_file(const fs::path& file, const std::function<void(std::ostream&)>& write, Over over) {
  struct stat status {};
  const bool exists = ::stat(file.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw cannot_write(file, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_to_special(file, write);
  if (exists && over == Over::NoInput) refuse_input(file);
  const fs::path target = behind_links(file);
  OpenedFile made = create_beside(target, file);
  if (exists) (void)::fchmod(made.descriptor, status.st_mode & 07777);
  write_into(made.descriptor, file, write);
  // On the disk before it has the name: a power failure leaves the old content or the new.
  if (::fsync(made.descriptor) != 0 && errno != EINVAL) throw cannot_write(file, errno);
  if (::rename(made.temporary.c_str(), target.c_str()) != 0) throw cannot_write(file, errno);
  made.temporary.clear();
  sync_directory(target.parent_path());
}

void write_file(const fs::path& file, std::string_view content, Over over) {
  write_file(
      file,
      [&](std::ostream& out) {
        out.write(content.data(), static_cast<std::streamsize>(content.size()));
      },
      over);
}

void make_directory(const fs::path& directory) {
  std::error_code code;
  fs::create_directories(directory, code);
  if (code) throw cannot_write(directory, code.value());
}

DirectoryTurn::DirectoryTurn(const fs::path& directory)
    : descriptor_{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)} {
  while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

DirectoryTurn::~DirectoryTurn() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace foretrace
