// Device memory that grows to the largest piece that was asked for.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

namespace foretrace::hw {

class GrowingMemory {
 public:
  GrowingMemory() = default;
  ~GrowingMemory();
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  /// At least so many bytes of that device, filled with normally distributed bfloat16. What was
  /// there is freed, which waits for the device: ask for the largest piece before time is taken.
  void* at(int ordinal, std::size_t bytes);

 private:
  struct Piece {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  std::mutex mutex_;
  std::map<int, Piece> pieces_;
};

}  // namespace foretrace::hw
