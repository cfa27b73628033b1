// Owns one NCCL communicator handle: one rank of a communicator, on one device.
#pragma once

#include <nccl.h>

#include <atomic>

namespace foretrace::hw {

/// The handle is atomic because the watchdog's thread may abort it while a host thread hangs in a
/// call on it, as NCCL allows (ncclCommAbort, 'Fault Tolerance').
class Communicator {
 public:
  Communicator() = default;
  ~Communicator() { abort(); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t handle() const { return handle_.load(std::memory_order_acquire); }
  explicit operator bool() const { return handle() != nullptr; }

  /// Where NCCL writes a new handle; inside a group it is valid only once the group has ended, so
  /// it counts from publish() on.
  ncclComm_t* created() { return &created_; }
  void publish() { handle_.store(created_, std::memory_order_release); }

  /// Hands the handle over: to ncclCommDestroy.
  ncclComm_t release() { return handle_.exchange(nullptr, std::memory_order_acq_rel); }
  /// Ends whatever runs on it, without waiting for other ranks.
  void abort() {
    if (ncclComm_t handle = release(); handle != nullptr) ncclCommAbort(handle);
  }

 private:
  std::atomic<ncclComm_t> handle_{nullptr};
  ncclComm_t created_ = nullptr;
};

}  // namespace foretrace::hw
