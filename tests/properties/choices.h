// Where a random program's decisions come from: a list of numbers that a property can shrink, or an
// endless generator. The first alternative, 0, is always the simplest.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace foretrace::test {

class Choices {
 public:
  /// From `numbers`; once they are used up, everything is 0 and the program ends.
  explicit Choices(std::vector<std::uint32_t> numbers) : numbers_{std::move(numbers)} {}
  /// `count` numbers of a generator.
  Choices(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 generator{seed};
    for (std::size_t i = 0; i < count; ++i) {
      numbers_.push_back(static_cast<std::uint32_t>(generator()));
    }
  }

  bool used_up() const { return next_ >= numbers_.size(); }
  /// 0 ... n-1
  std::uint32_t below(std::size_t n) {
    return used_up() ? 0 : numbers_[next_++] % static_cast<std::uint32_t>(n);
  }
  bool one_in(std::size_t n) { return below(n) + 1 == n; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::size_t next_ = 0;
};

}  // namespace foretrace::test
