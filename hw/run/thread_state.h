// What a host thread tells others about itself while it runs: written by the thread at every
// operation for a few nanoseconds, read by the watchdog when nothing moves any more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/trace/records.h"
#include "scenarios/program/ids.h"

namespace foretrace::hw {

/// The NCCL operations a host thread has issued in this pass, the last ones of very many.
class NcclCallLog {
 public:
  void push(Execution call) {
    const std::uint64_t n = count_.load(std::memory_order_relaxed);
    calls_[n % kCapacity] = call;
    count_.store(n + 1, std::memory_order_release);
  }
  void clear() { count_.store(0, std::memory_order_relaxed); }
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }
  bool complete() const { return count() <= kCapacity; }
  /// Oldest first.
  std::vector<Execution> calls() const {
    const std::uint64_t n = count();
    std::vector<Execution> result;
    for (std::uint64_t i = n > kCapacity ? n - kCapacity : 0; i < n; ++i) {
      result.push_back(calls_[i % kCapacity]);
    }
    return result;
  }

 private:
  static constexpr std::uint64_t kCapacity = 16384;
  std::atomic<std::uint64_t> count_{0};
  std::array<Execution, kCapacity> calls_{};
};

struct alignas(64) ThreadState {
  enum class Phase : std::uint8_t { NotStarted, Running, Finished };
  static constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

  std::atomic<std::uint32_t> op{0};
  std::atomic<std::uint64_t> instance{0};
  std::atomic<Phase> phase{Phase::NotStarted};
  std::atomic<std::uint32_t> open_group{
      kNoGroup};                            ///< outermost nccl_group whose end is not called
  std::atomic<std::uint64_t> completed{0};  ///< operations; never reset
  NcclCallLog nccl_calls;

  void begin(OpId id, std::uint64_t op_instance) {
    op.store(id.value, std::memory_order_relaxed);
    instance.store(op_instance, std::memory_order_relaxed);
  }
  void end() {
    // One writer: no read-modify-write needed.
    completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Execution current() const {
    return {op.load(std::memory_order_relaxed), instance.load(std::memory_order_relaxed)};
  }
};

}  // namespace foretrace::hw
