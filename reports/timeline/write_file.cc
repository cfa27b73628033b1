#include "reports/timeline/write_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "scenarios/text/errors.h"

namespace foretrace {
namespace {

/// Removes the temporary file unless the write came to its end.
struct Temporary {
  std::filesystem::path path;
  bool kept = false;
  ~Temporary() {
    std::error_code ignored;
    if (!kept) std::filesystem::remove(path, ignored);
  }
};

IoError cannot_write(const std::filesystem::path& file, int code) {
  return IoError{fmt::format("cannot write {}: {}", file.string(),
                             code != 0 ? std::strerror(code) : "the write failed")};
}

}  // namespace

void write_file(const std::filesystem::path& file,
                const std::function<void(std::ostream&)>& write) {
  Temporary temporary{file.string() + ".tmp"};
  errno = 0;
  std::ofstream out{temporary.path, std::ios::binary | std::ios::trunc};
  if (!out) throw cannot_write(file, errno);
  write(out);
  out.close();
  if (!out) throw cannot_write(file, errno);
  std::error_code code;
  std::filesystem::rename(temporary.path, file, code);
  if (code) throw cannot_write(file, code.value());
  temporary.kept = true;
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  write_file(file, [&](std::ostream& out) {
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
  });
}

}  // namespace foretrace
