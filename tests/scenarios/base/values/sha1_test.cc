#include "scenarios/base/values/sha1.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "scenarios/base/text/made_from.h"

namespace foretrace {
namespace {

std::string sha1_of(std::string_view bytes, bool plain, std::size_t piece) {
  Sha1 sha1{plain};
  for (std::size_t at = 0; at < bytes.size(); at += piece) sha1.update(bytes.substr(at, piece));
  std::string text;
  for (const std::uint8_t byte : sha1.finish()) text += fmt::format("{:02x}", byte);
  return text;
}

/// FIPS 180-1, appendices A to C, and nothing.
TEST(Sha1, IsThatOfTheStandardWithAndWithoutTheProcessorsInstructions) {
  const std::string million(1'000'000, 'a');
  for (const bool plain : {false, true}) {
    EXPECT_EQ(sha1_of("abc", plain, 64), "a9993e364706816aba3e25717850c26c9cd0d89d");
    EXPECT_EQ(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", plain, 64),
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    EXPECT_EQ(sha1_of(million, plain, 4096), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    EXPECT_EQ(sha1_of("", plain, 64), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  }
}

TEST(Sha1, IsTheSameWhateverThePieces) {
  std::string bytes;
  for (int i = 0; i < 400; ++i) bytes += static_cast<char>(i * 7);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string_view text = std::string_view{bytes}.substr(0, size);
    const std::string whole = sha1_of(text, true, bytes.size());
    for (const std::size_t piece : {1U, 55U, 64U, 65U}) {
      ASSERT_EQ(sha1_of(text, false, piece), whole) << size << " bytes by " << piece;
    }
  }
}

/// Python: uuid.uuid5(uuid.NAMESPACE_OID, "foretrace").
TEST(Sha1, OfANameIsItsUuid) {
  EXPECT_EQ(digest_of("foretrace"), "69ff459b-9dd2-528c-8bb9-6f00dd1639e6");
  EXPECT_EQ(digest_of(""), "0a68eb57-c88a-5f34-9e9d-27f85e68af4f");
}

}  // namespace
}  // namespace foretrace
