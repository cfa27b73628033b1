// A counting semaphore between the host threads and host functions of a process.
#pragma once

#include <cstdint>

#include "sim/device/work.h"
#include "sim/engine/queue.h"

namespace foretrace::sim {

class Semaphore {
 public:
  /// Takes one if there is one; else the caller may wait().
  bool try_take() {
    if (count_ == 0) return false;
    --count_;
    return true;
  }
  /// Wakes `waiter` once it has been given one; first come, first served.
  void wait(Waiter& waiter) { waiting_.push_back(&waiter); }
  void give() {
    if (waiting_.empty()) {
      ++count_;
      return;
    }
    Waiter* first = waiting_.front();
    waiting_.pop_front();
    first->wake();
  }

 private:
  std::uint64_t count_ = 0;
  Queue<Waiter*> waiting_;
};

}  // namespace foretrace::sim
