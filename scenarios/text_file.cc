#include "scenarios/text_file.h"

#include <fmt/format.h>

#include <fstream>

#include "scenarios/errors.h"

namespace foretrace {

std::string read_text_file(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UsageError{fmt::format("{}: error: this is a directory\n", file.string())};
  }
  std::ifstream stream{file, std::ios::binary};
  if (!stream) {
    const bool exists = std::filesystem::exists(file, error);
    throw UsageError{fmt::format("{}: error: {}\n", file.string(),
                                 exists ? "the file cannot be read" : "there is no such file")};
  }
  std::string text(kLargestText + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace foretrace
