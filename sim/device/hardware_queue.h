// A connection between the host and a GPU (CUDA_DEVICE_MAX_CONNECTIONS): a first-in, first-out
// queue that several streams may have to share. An entry that cannot begin yet holds up everything
// behind it, of other streams too: a false dependency.
#pragma once

#include "sim/device/work.h"
#include "sim/engine/queue.h"

namespace foretrace::sim {

class HardwareQueue {
 public:
  void push(Waiter& stream) { order_.push_back(&stream); }
  bool is_first(const Waiter& stream) const { return order_.front() == &stream; }
  /// The first entry has begun: the next one's turn.
  void pop() {
    order_.pop_front();
    if (!order_.empty()) order_.front()->wake();
  }

 private:
  Queue<Waiter*> order_;
};

}  // namespace foretrace::sim
