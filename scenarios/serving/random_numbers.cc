#include "scenarios/serving/random_numbers.h"

#include <bit>

namespace foretrace::serving {
namespace {

__extension__ using UnsignedWide = unsigned __int128;

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr std::uint64_t kLn2 = 0xB17217F7D1CF79AB;  // ln 2 * 2^64, rounded down

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

RandomNumbers::RandomNumbers(std::uint64_t seed, std::uint64_t stream)
    : state_{mix((seed * 16 + stream + 1) * kGolden)} {}

std::uint64_t RandomNumbers::next() {
  state_ += kGolden;
  return mix(state_);
}

std::int64_t RandomNumbers::exponential() {
  const std::uint64_t x = next();
  const auto below = static_cast<std::uint64_t>(64 * kOne - log2_of(x == 0 ? 1 : x));
  return static_cast<std::int64_t>((UnsignedWide{below} * kLn2) >> 64);
}

std::int64_t RandomNumbers::normal() {
  std::int64_t sum = -6 * kOne;
  for (int i = 0; i < 12; ++i) sum += static_cast<std::int64_t>(next() >> 32);
  return sum;
}

std::int64_t log2_of(std::uint64_t x) {
  const int whole = static_cast<int>(std::bit_width(x)) - 1;
  x <<= 63 - whole;  // in [2^63, 2^64)
  std::int64_t result = whole;
  for (int place = 0; place < 32; ++place) {
    const UnsignedWide square = (UnsignedWide{x} * x) >> 63;
    const bool is_over = (square >> 64) != 0;
    result = 2 * result + (is_over ? 1 : 0);
    x = static_cast<std::uint64_t>(is_over ? square >> 1 : square);
  }
  return result;
}

std::int64_t scaled(std::int64_t share, std::int64_t mean) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>((Wide{share} * mean) >> 32);
}

}  // namespace foretrace::serving
