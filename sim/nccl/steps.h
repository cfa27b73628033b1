// How far a rank gets ahead of the one that reads what it sends.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace foretrace::sim {

/// The steps of one connection's buffers that are written and not read yet. Whoever writes more
/// waits: 15 small reductions end 7 late ones before the last for the rank that is early.
template <class Writer>
class StepWindow {
 public:
  /// NCCL_STEPS of nccl src/include/device.h.
  static constexpr std::uint32_t kSteps = 8;

  /// Writes so many, at most kSteps. Else `writer` has to wait, and room_made() tells it.
  bool write(std::uint32_t steps, Writer& writer) {
    if (written_ + steps <= kSteps) {
      written_ += steps;
      return true;
    }
    waiting_.push_back(&writer);
    return false;
  }
  void read(std::uint32_t steps) {
    written_ -= steps;
    const std::vector<Writer*> waiting = std::exchange(waiting_, {});
    for (Writer* writer : waiting) writer->room_made();
  }
  void forget(Writer& writer) { std::erase(waiting_, &writer); }

 private:
  std::uint32_t written_ = 0;
  std::vector<Writer*> waiting_;
};

}  // namespace foretrace::sim
