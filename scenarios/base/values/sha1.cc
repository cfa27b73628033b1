#include "scenarios/base/values/sha1.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace foretrace {
namespace {

constexpr std::array<std::uint32_t, 4> kRounds{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};

std::uint32_t word_at(const char* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<std::uint8_t>(bytes[i]);
  return word;
}

template <int kPart>
std::uint32_t mixed(std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  if constexpr (kPart == 0) return d ^ (b & (c ^ d));
  if constexpr (kPart == 2) return (b & c) | (d & (b | c));
  return b ^ c ^ d;
}

template <int kPart>
void twenty_rounds(Sha1::State& s, const std::array<std::uint32_t, 80>& words) {
  auto [a, b, c, d, e] = s;
#pragma GCC unroll 20
  for (std::size_t t = 20 * kPart; t < 20 * (kPart + 1); ++t) {
    const std::uint32_t next =
        std::rotl(a, 5) + mixed<kPart>(b, c, d) + e + kRounds[kPart] + words[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  s = {a, b, c, d, e};
}

void plain_blocks(Sha1::State& state, const char* bytes, std::size_t blocks) {
  std::array<std::uint32_t, 80> words;  // NOLINT: written before it is read
  for (; blocks > 0; --blocks, bytes += Sha1::kBlock) {
    for (std::size_t t = 0; t < 16; ++t) words[t] = word_at(bytes + 4 * t);
    for (std::size_t t = 16; t < 80; ++t) {
      words[t] = std::rotl(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1);
    }
    Sha1::State next = state;
    twenty_rounds<0>(next, words);
    twenty_rounds<1>(next, words);
    twenty_rounds<2>(next, words);
    twenty_rounds<3>(next, words);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += next[i];
  }
}

#if defined(__x86_64__)
#define FORETRACE_WITH_SHA __attribute__((target("sha,ssse3,sse4.1")))

bool has_sha() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSsse3 = 1U << 9, kSse41 = 1U << 19, kSha = 1U << 29;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSsse3) == 0 || (c & kSse41) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}

/// What four rounds at a time go on with.
struct Rounds {
  __m128i abcd, before;  // before the last four
  __m128i words[4];      // NOLINT: the schedule's last sixteen, the earliest word on top
};

/// Five times four rounds; the first four of all take e as it is.
template <int kPart>
FORETRACE_WITH_SHA inline void twenty_rounds(Rounds& r, __m128i e) {
#pragma GCC unroll 5
  for (int i = 5 * kPart; i < 5 * (kPart + 1); ++i) {
    __m128i& now = r.words[i % 4];
    const __m128i next = i == 0 ? _mm_add_epi32(e, now) : _mm_sha1nexte_epu32(r.before, now);
    r.before = r.abcd;
    r.abcd = _mm_sha1rnds4_epu32(r.abcd, next, kPart);
    const __m128i mixed =
        _mm_xor_si128(_mm_sha1msg1_epu32(now, r.words[(i + 1) % 4]), r.words[(i + 2) % 4]);
    now = _mm_sha1msg2_epu32(mixed, r.words[(i + 3) % 4]);
  }
}

FORETRACE_WITH_SHA void sha_blocks(Sha1::State& state, const char* bytes, std::size_t blocks) {
  const __m128i turned = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
  constexpr int kReversed = 0x1b;
  __m128i abcd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data()));  // NOLINT
  abcd = _mm_shuffle_epi32(abcd, kReversed);
  __m128i e = _mm_set_epi32(static_cast<int>(state[4]), 0, 0, 0);
  for (; blocks > 0; --blocks, bytes += Sha1::kBlock) {
    Rounds r{abcd, abcd, {}};
    for (int i = 0; i < 4; ++i) {
      const auto* at = reinterpret_cast<const __m128i*>(bytes) + i;  // NOLINT
      r.words[i] = _mm_shuffle_epi8(_mm_loadu_si128(at), turned);
    }
    twenty_rounds<0>(r, e);
    twenty_rounds<1>(r, e);
    twenty_rounds<2>(r, e);
    twenty_rounds<3>(r, e);
    e = _mm_sha1nexte_epu32(r.before, e);
    abcd = _mm_add_epi32(r.abcd, abcd);
  }
  abcd = _mm_shuffle_epi32(abcd, kReversed);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), abcd);  // NOLINT
  state[4] = static_cast<std::uint32_t>(_mm_extract_epi32(e, 3));
}
#endif

}  // namespace

Sha1::Sha1(bool plain) : blocks_{plain_blocks} {
#if defined(__x86_64__)
  static const bool kHasSha = has_sha();
  if (kHasSha && !plain) blocks_ = sha_blocks;
#else
  static_cast<void>(plain);
#endif
}

void Sha1::update(std::string_view bytes) {
  size_ += bytes.size();
  if (resting_ > 0) {
    const std::size_t more = std::min(kBlock - resting_, bytes.size());
    std::memcpy(rest_.data() + resting_, bytes.data(), more);
    resting_ += more;
    bytes.remove_prefix(more);
    if (resting_ < kBlock) return;
    blocks_(state_, rest_.data(), 1);
    resting_ = 0;
  }
  blocks_(state_, bytes.data(), bytes.size() / kBlock);
  bytes.remove_prefix(bytes.size() / kBlock * kBlock);
  if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
  resting_ = bytes.size();
}

Sha1::Digest Sha1::finish() {
  const std::uint64_t bits = size_ * 8;
  constexpr std::size_t kLengthBytes = 8;  // bytes of the message's length at the end
  std::array<char, 2 * kBlock> end{};
  std::memcpy(end.data(), rest_.data(), resting_);
  end[resting_] = static_cast<char>(0x80);
  const std::size_t blocks = resting_ + 1 + kLengthBytes > kBlock ? 2 : 1;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    end[blocks * kBlock - 1 - i] = static_cast<char>(bits >> 8 * i);
  }
  blocks_(state_, end.data(), blocks);
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> 8 * (3 - i % 4));
  }
  return digest;
}

NameDigest::NameDigest() {
  sha1_.update({"\x6b\xa7\xb8\x12\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8", 16});
}

std::string NameDigest::finish() {
  Sha1::Digest digest = sha1_.finish();
  digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0f) | 0x50);  // version 5
  digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3f) | 0x80);  // RFC 4122's variant
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    fmt::format_to(std::back_inserter(text), "{:02x}", digest[i]);
  }
  return text;
}

}  // namespace foretrace
