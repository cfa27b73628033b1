#include "scenarios/base/text/unpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

constexpr std::size_t kUnpackedChunk = std::size_t{1} << 18;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for gzip

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Unpacked::Unpacked(std::string_view packed, std::string name, std::size_t most,
                   std::size_t longest_word)
    : name_{std::move(name)},
      most_{most},
      left_{most},
      longest_word_{longest_word},
      buffer_(kUnpackedChunk),
      packed_{packed} {
  if (inflateInit2(&stream_, kGzipWindow) != Z_OK) fail("zlib has no memory");
}

Unpacked::~Unpacked() { inflateEnd(&stream_); }

void Unpacked::fail(std::string_view why) const {
  throw UsageError{fmt::format("{}: {}", name_, why)};
}

/// Zeros behind a member fill a block, of a tape or a store; gzip ignores them.
void Unpacked::skip_padding() {
  while (stream_.avail_in > 0 && *stream_.next_in == 0) {
    ++stream_.next_in;
    --stream_.avail_in;
  }
  if (stream_.avail_in > 0) return;
  packed_.remove_prefix(std::min(packed_.size(), packed_.find_first_not_of('\0')));
}

Unpacked::int_type Unpacked::underflow() {
  if (at_end_) return traits_type::eof();
  stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
  stream_.avail_out = static_cast<uInt>(buffer_.size());
  while (stream_.avail_out == buffer_.size()) {  // until something has come
    if (stream_.avail_in == 0) {
      const std::size_t next =
          std::min<std::size_t>(packed_.size(), std::numeric_limits<uInt>::max() / 2);
      if (next == 0) fail("the gzip data ends too early: the file is cut off");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
      stream_.avail_in = static_cast<uInt>(next);
      packed_.remove_prefix(next);
    }
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      skip_padding();
      at_end_ = stream_.avail_in == 0 && packed_.empty();
      if (at_end_) break;
      if (inflateReset(&stream_) != Z_OK) fail("the gzip data is damaged");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail("the gzip data is damaged");
    }
  }
  const std::size_t got = buffer_.size() - stream_.avail_out;
  if (got > left_) fail(fmt::format("more than {} MiB when unpacked", most_ >> 20));
  left_ -= got;
  gathered_ += got;
  if (gathered_ > longest_word_) {
    fail(fmt::format("a text of more than {} MiB", longest_word_ >> 20));
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
  return got == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_.front());
}

}  // namespace foretrace
