#include "scenarios/text/packed_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "scenarios/text/errors.h"
#include "scenarios/text/text_file.h"

namespace foretrace {
namespace {

constexpr int kGzipOnly = 15 + 16;  // zlib's word for the largest window, and for gzip's head

class Inflater {
 public:
  explicit Inflater(std::string& packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    is_open_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (is_open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// False where the data are damaged or cut off.
  bool append_to(std::string& text, std::size_t most) {
    std::array<char, 1 << 16> piece{};
    while (is_open_ && text.size() <= most) {
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = piece.size();
      const int result = inflate(&stream_, Z_NO_FLUSH);
      text.append(piece.data(), piece.size() - stream_.avail_out);
      if (result == Z_STREAM_END) {
        // what follows may be another member, or padding
        if (stream_.avail_in == 0 || *stream_.next_in == 0) return true;
        if (inflateReset(&stream_) != Z_OK) return false;
      } else if (result != Z_OK) {
        return false;
      }
    }
    return is_open_;
  }

 private:
  z_stream stream_{};
  bool is_open_ = false;
};

}  // namespace

std::string read_packed_text_file(const std::filesystem::path& file, std::size_t most) {
  std::string bytes = read_text_file(file, most);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  std::string text;
  if (!Inflater{bytes}.append_to(text, most)) {
    throw UsageError{fmt::format("{}: damaged or cut off: it cannot be unpacked", file.string())};
  }
  if (text.size() > most) {
    throw UsageError{
        fmt::format("{}: more than {} MiB when unpacked", file.string(), most >> 20)};
  }
  return text;
}

}  // namespace foretrace
