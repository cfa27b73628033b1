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
#include <vector>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/made_from.h"

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

struct OpenFile {
  int descriptor;
  ~OpenFile() { ::close(descriptor); }
};

}  // namespace

tl::expected<std::string, std::string> read_plain_file(const std::filesystem::path& named,
                                                       std::size_t most) {
  const std::filesystem::path file = shipped_file(named);
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return tl::unexpected{why_not_opened()};
  // Before it is opened: that alone changes some devices. And once more: it may be another by then.
  if (!S_ISREG(status.st_mode)) return tl::unexpected{why_not_plain(status.st_mode)};
  const OpenFile in{::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (in.descriptor < 0) return tl::unexpected{why_not_opened()};
  if (::fstat(in.descriptor, &status) != 0) return tl::unexpected{why_not_opened()};
  if (!S_ISREG(status.st_mode)) return tl::unexpected{why_not_plain(status.st_mode)};
  std::string text;
  constexpr std::size_t kPiece = 64 * 1024;
  text.reserve(std::min(static_cast<std::size_t>(status.st_size), most) + kPiece);
  for (ssize_t got = 1; got != 0 && text.size() <= most;) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    got = ::read(in.descriptor, text.data() + had, kPiece);
    if (got < 0 && errno != EINTR) return tl::unexpected{why_not_opened()};
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (text.size() > most) {
    return tl::unexpected{fmt::format("larger than {} MiB, the most that is read", most >> 20)};
  }
  note_read_file(file, text);
  InputFiles& inputs = input_files();
  const std::lock_guard lock{inputs.mutex};
  inputs.all.insert(identity_of(status));
  return text;
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
  if (text) return *std::move(text);
  const std::string hint = text.error() == kNoSuchFile ? similar_file(file) : "";
  throw UsageError{fmt::format("{}: error: {}\n{}", file.string(), text.error(),
                               hint.empty() ? "" : fmt::format("  hint: {}\n", hint))};
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
