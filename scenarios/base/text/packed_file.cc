#include "scenarios/base/text/packed_file.h"

#include <istream>
#include <iterator>

#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/unpack.h"

namespace foretrace {

std::string read_packed_text_file(const std::filesystem::path& file, std::size_t most) {
  std::string bytes = read_text_file(file, most);
  if (!is_gzip(bytes)) return bytes;
  Unpacked unpacked{bytes, file.string(), most};
  return std::string{std::istreambuf_iterator<char>{&unpacked}, {}};
}

}  // namespace foretrace
