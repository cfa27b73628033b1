#include "hw/execute/stored_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kPage = 4096;                   ///< what O_DIRECT asks for, at most
constexpr std::size_t kPiece = std::size_t{8} << 20;  ///< of one call

[[noreturn]] void cannot(const char* what) {
  throw IoError{fmt::format("cannot {} a file below {}: {}", what,
                            std::filesystem::temp_directory_path().string(), std::strerror(errno))};
}

bool on_a_page(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % kPage == 0; }

}  // namespace

/// Open, and already without a name.
class StoredFiles::File {
 public:
  explicit File(std::uint64_t bytes) {
    std::string name = (std::filesystem::temp_directory_path() / "foretrace-XXXXXX").string();
    written_ = mkstemp(name.data());
    if (written_ < 0) cannot("make");
    direct_ = open(name.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    unlink(name.c_str());
    fill(bytes);
    if (direct_ >= 0) piece_ = static_cast<std::byte*>(std::aligned_alloc(kPage, kPiece));
  }
  ~File() {
    std::free(piece_);
    if (direct_ >= 0) close(direct_);
    if (written_ >= 0) close(written_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void read(std::byte* into, std::uint64_t bytes) {
    if (direct_ < 0) {
      static_cast<void>(posix_fadvise(written_, 0, 0, POSIX_FADV_DONTNEED));
      for (std::uint64_t at = 0; at < bytes;) at += piece(written_, into + at, bytes - at, at);
      return;
    }
    for (std::uint64_t at = 0; at < bytes;) {
      const std::uint64_t left = std::min<std::uint64_t>(bytes - at, kPiece);
      if (left % kPage == 0 && on_a_page(into + at)) {
        at += piece(direct_, into + at, left, at);
        continue;
      }
      // Memory that is not on a page, or the file's last bytes: through a piece of our own.
      const std::uint64_t whole = (left + kPage - 1) / kPage * kPage;
      const std::uint64_t got = std::min(left, piece(direct_, piece_, whole, at));
      std::memcpy(into + at, piece_, got);
      at += got;
    }
  }

 private:
  /// Returns the bytes that came: whole pages, so that the next offset is one too.
  static std::uint64_t piece(int file, std::byte* into, std::uint64_t bytes, std::uint64_t at) {
    const ssize_t got =
        pread(file, into, std::min<std::uint64_t>(bytes, kPiece), static_cast<off_t>(at));
    if (got <= 0) {
      if (got == 0) errno = ENODATA;
      cannot("read");
    }
    return static_cast<std::uint64_t>(got);
  }

  void fill(std::uint64_t bytes) const {
    std::vector<std::uint64_t> random(kPiece / sizeof(std::uint64_t));
    std::mt19937_64 generator{bytes};
    std::ranges::generate(random, [&] { return generator(); });
    const std::uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
    for (std::uint64_t at = 0; at < whole;) {
      const ssize_t put =
          pwrite(written_, random.data(), std::min<std::uint64_t>(whole - at, kPiece),
                 static_cast<off_t>(at));
      if (put <= 0) cannot("write");
      at += static_cast<std::uint64_t>(put);
    }
    if (fsync(written_) != 0) cannot("store");
  }

  int written_ = -1;
  int direct_ = -1;
  std::byte* piece_ = nullptr;
};

void StoredFiles::Close::operator()(File* file) const { delete file; }

void StoredFiles::write(std::uint32_t reader, std::uint64_t bytes) {
  files_[reader] = std::unique_ptr<File, Close>{new File{bytes}};
}

void StoredFiles::read(std::uint32_t reader, void* into, std::uint64_t bytes) {
  files_.at(reader)->read(static_cast<std::byte*>(into), bytes);
}

}  // namespace foretrace::hw
