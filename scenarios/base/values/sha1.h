// SHA-1, piece by piece: what results were made from is told by it, and traces have gigabytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

class Sha1 {
 public:
  using Digest = std::array<std::uint8_t, 20>;
  using State = std::array<std::uint32_t, 5>;
  static constexpr std::size_t kBlock = 64;

  /// With the processor's own instructions where it has some; `plain`: never.
  explicit Sha1(bool plain = false);
  void update(std::string_view bytes);
  Digest finish();

 private:
  using Blocks = void (*)(State& state, const char* bytes, std::size_t blocks);
  Blocks blocks_;
  State state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<char, kBlock> rest_{};  ///< bytes that are no whole block yet
  std::size_t resting_ = 0;
  std::uint64_t size_ = 0;
};

/// A name in RFC 4122's namespace of object identifiers, as a UUID (version 5), piece by piece.
class NameDigest {
 public:
  NameDigest();
  void update(std::string_view bytes) { sha1_.update(bytes); }
  /// "6ba7b812-9dad-51d1-80b4-00c04fd430c8"
  std::string finish();

 private:
  Sha1 sha1_;
};

}  // namespace foretrace
