#include "scenarios/base/text/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"
#include "scenarios/base/values/sha1.h"

namespace foretrace {
namespace {

/// A file by what it is, not by its name; written anew, it is another.
using FileIdentity = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

constexpr const char* kNoSuchFile = "there is no such file";

struct InputFiles {
  std::mutex mutex;
  std::set<FileIdentity> all;
};

InputFiles& input_files() {
  static InputFiles files;
  return files;
}

std::string why_not_plain(mode_t mode) {
  if (S_ISDIR(mode)) return "this is a directory";
  const char* kind = S_ISFIFO(mode)                   ? "a pipe"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                      : "a socket";
  return fmt::format("this is {}, and a plain file is needed", kind);
}

std::string why_not_opened() {
  if (errno == ENOENT || errno == ENOTDIR) return kNoSuchFile;
  return fmt::format("the file cannot be read: {}", std::strerror(errno));
}

/// A plain file that is open, and what it is.
class PlainFile {
 public:
  explicit PlainFile(const std::filesystem::path& named) : file_{shipped_file(named)} { open(); }
  ~PlainFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  /// Why it cannot be read, or any more; empty: it can.
  const std::string& problem() const { return problem_; }
  std::size_t size() const { return static_cast<std::size_t>(status_.st_size); }

  /// So many more bytes at most; 0 at the end and where there is a problem.
  std::size_t read(char* to, std::size_t most) {
    ssize_t got = -1;
    do {
      got = ::read(descriptor_, to, most);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(why_not_opened());
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  void is_larger_than(std::size_t most) {
    fail(fmt::format("larger than {} MiB, the most that is read", most >> 20));
  }

  /// All of it was read.
  void note(std::string digest) const {
    note_read_file(file_, std::move(digest));
    InputFiles& inputs = input_files();
    const std::lock_guard lock{inputs.mutex};
    inputs.all.insert(identity_of(status_));
  }

 private:
  void fail(std::string problem) { problem_ = std::move(problem); }
  void open() {
    if (::stat(file_.c_str(), &status_) != 0) return fail(why_not_opened());
    // Before it is opened: that alone changes some devices. And once more: it may be another then.
    if (!S_ISREG(status_.st_mode)) return fail(why_not_plain(status_.st_mode));
    descriptor_ = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor_ < 0 || ::fstat(descriptor_, &status_) != 0) return fail(why_not_opened());
    if (!S_ISREG(status_.st_mode)) fail(why_not_plain(status_.st_mode));
  }

  std::filesystem::path file_;
  struct stat status_ {};
  int descriptor_ = -1;
  std::string problem_;
};

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& problem) {
  const std::string hint = problem == kNoSuchFile ? similar_file(file) : "";
  throw UsageError{fmt::format("{}: error: {}\n{}", file.string(), problem,
                               hint.empty() ? "" : fmt::format("  hint: {}\n", hint))};
}

}  // namespace

tl::expected<std::string, std::string> read_plain_file(const std::filesystem::path& named,
                                                       std::size_t most) {
  PlainFile in{named};
  if (!in.problem().empty()) return tl::unexpected{in.problem()};
  std::string text;
  constexpr std::size_t kPiece = 64 * 1024;
  text.reserve(std::min(in.size(), most) + kPiece);
  for (std::size_t got = 1; got != 0 && text.size() <= most;) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    got = in.read(text.data() + had, kPiece);
    text.resize(had + got);
  }
  if (text.size() > most) in.is_larger_than(most);
  if (!in.problem().empty()) return tl::unexpected{in.problem()};
  in.note(digest_of(text));
  return text;
}

class FileStream::Pieces {
 public:
  Pieces(const std::filesystem::path& named, std::size_t most)
      : named_{named}, in_{named}, most_{most}, buffer_(kPiece) {
    if (!in_.problem().empty()) refuse(named_, in_.problem());
  }
  /// The next piece; empty at the end.
  std::string_view next() {
    const std::size_t got = is_over_ ? 0 : in_.read(buffer_.data(), buffer_.size());
    if (got > most_ - read_) in_.is_larger_than(most_);
    if (!in_.problem().empty()) refuse(named_, in_.problem());
    read_ += got;
    digest_.update({buffer_.data(), got});
    if (got == 0 && !std::exchange(is_over_, true)) in_.note(digest_.finish());
    return {buffer_.data(), got};
  }
  char* begin() { return buffer_.data(); }

 private:
  static constexpr std::size_t kPiece = 256 * 1024;
  std::filesystem::path named_;
  PlainFile in_;
  std::size_t most_, read_ = 0;
  std::vector<char> buffer_;
  NameDigest digest_;
  bool is_over_ = false;
};

FileStream::FileStream(const std::filesystem::path& file, std::size_t most)
    : pieces_{std::make_unique<Pieces>(file, most)} {}
FileStream::~FileStream() = default;

FileStream::int_type FileStream::underflow() {
  const std::size_t got = pieces_->next().size();
  setg(pieces_->begin(), pieces_->begin(), pieces_->begin() + got);
  return got == 0 ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

std::string_view FileStream::head() {
  if (gptr() == egptr()) underflow();
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

std::string similar_file(const std::filesystem::path& file) {
  constexpr std::size_t kMostLooked = 5000;
  std::error_code none;
  std::map<std::string, std::filesystem::path> by_name;
  const auto look = [&](const std::filesystem::path& found) {
    if (found.extension() == file.extension()) by_name.try_emplace(found.filename(), found);
  };
  const std::filesystem::path beside = file.has_parent_path() ? file.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator{beside, none}) {
    if (by_name.size() < kMostLooked && entry.is_regular_file(none)) {
      look(file.parent_path() / entry.path().filename());
    }
  }
  if (file.is_relative()) {
    for (const std::filesystem::path& shipped : shipped_scenarios()) look(shipped);
  }
  std::vector<std::string> names;
  for (const auto& [name, path] : by_name) names.push_back(name);
  const std::string hint = suggest(file.filename().string(), names);
  for (const auto& [name, path] : by_name) {
    if (hint == fmt::format("did you mean '{}'?", name)) {
      return fmt::format("did you mean '{}'?", path.string());
    }
  }
  return {};
}

std::string read_text_file(const std::filesystem::path& file, std::size_t most) {
  auto text = read_plain_file(file, most);
  if (!text) refuse(file, text.error());
  return *std::move(text);
}

std::string read_standard_input(std::size_t most) {
  std::string text;
  constexpr std::size_t kPiece = 64 * 1024;
  for (ssize_t got = 1; got != 0 && text.size() <= most;) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    got = ::read(STDIN_FILENO, text.data() + had, kPiece);
    if (got < 0 && errno != EINTR) {
      throw UsageError{fmt::format("standard input: {}", std::strerror(errno))};
    }
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (text.size() > most) {
    throw UsageError{
        fmt::format("standard input: larger than {} MiB, the most that is read", most >> 20)};
  }
  return text;
}

bool is_input(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return false;
  InputFiles& inputs = input_files();
  const std::lock_guard lock{inputs.mutex};
  return inputs.all.contains(identity_of(status));
}

}  // namespace foretrace
