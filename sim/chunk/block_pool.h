// Blocks of equal elements that come and go, of which networks of slices have many thousands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace foretrace::sim {

/// Indices stay valid until release().
template <class T>
class BlockPool {
 public:
  std::uint32_t take(std::size_t count) {
    auto& free = free_[count];
    if (!free.empty()) {
      const std::uint32_t first = free.back();
      free.pop_back();
      std::fill_n(all_.begin() + first, count, T{});
      return first;
    }
    const auto first = static_cast<std::uint32_t>(all_.size());
    all_.resize(all_.size() + count);
    return first;
  }
  void release(std::uint32_t first, std::size_t count) { free_[count].push_back(first); }
  T& operator[](std::size_t index) { return all_[index]; }
  const T& operator[](std::size_t index) const { return all_[index]; }

 private:
  std::vector<T> all_;
  std::map<std::size_t, std::vector<std::uint32_t>> free_;  ///< by count
};

}  // namespace foretrace::sim
