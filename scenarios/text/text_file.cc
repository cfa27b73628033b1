#include "scenarios/text/text_file.h"

#include <fmt/format.h>

#include <fstream>

#include "scenarios/text/errors.h"

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
  // Piece by piece: room for the largest text at once would cost more than reading a small one.
  constexpr std::size_t kPiece = 64 * 1024;
  std::string text;
  while (stream && text.size() <= kLargestText) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    stream.read(text.data() + had, kPiece);
    text.resize(had + static_cast<std::size_t>(stream.gcount()));
  }
  return text;
}

}  // namespace foretrace
