// gzip, unpacked as it is read.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// Whether bytes begin as gzip's do.
bool is_gzip(std::string_view bytes);

/// Several members one after the other are one text; zeros behind one are padding. Throws UsageError
/// (`name: ...`) where the bytes are damaged or end too early, beyond `most` unpacked bytes, and where
/// a reader gathers more than `longest_word` bytes without understanding them.
class Unpacked : public std::streambuf {
 public:
  static constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);
  Unpacked(std::string_view packed, std::string name, std::size_t most,
           std::size_t longest_word = kNoLimit);
  ~Unpacked() override;
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  /// The reader has understood what came so far. Without it, it gathers one word without end.
  void understood() { gathered_ = 0; }

 protected:
  int_type underflow() override;

 private:
  [[noreturn]] void fail(std::string_view why) const;
  void skip_padding();

  std::string name_;
  std::size_t most_, left_;   ///< bytes that may come, and still may
  std::size_t longest_word_;
  std::size_t gathered_ = 0;  ///< since understood()
  std::vector<char> buffer_;
  z_stream stream_{};
  std::string_view packed_;
  bool at_end_ = false;
};

}  // namespace foretrace
