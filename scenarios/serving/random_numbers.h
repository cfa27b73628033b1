// Random numbers in whole numbers only, so that every implementation draws the same: ../serving.md
// has the formulas, hw/serving/engine/random_numbers.py the same in Python.
#pragma once

#include <cstdint>

namespace foretrace::serving {

/// 1 of a number with 32 binary places.
inline constexpr std::int64_t kOne = std::int64_t{1} << 32;

/// SplitMix64's, stream `stream` of a seed.
class RandomNumbers {
 public:
  RandomNumbers(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t next();
  /// Of mean 1, with 32 binary places: -ln(x / 2^64) of the next number x; 0 counts as 1.
  std::int64_t exponential();
  /// The sum of twelve numbers in [0, 1), less 6, with 32 binary places.
  std::int64_t normal();

 private:
  std::uint64_t state_;
};

/// Of a number with 32 binary places, so many times; rounds down.
std::int64_t scaled(std::int64_t share, std::int64_t mean);

/// Of x >= 1, with 32 binary places, rounded down.
std::int64_t log2_of(std::uint64_t x);

}  // namespace foretrace::serving
