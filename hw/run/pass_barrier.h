// Where threads of several processes meet: spin barriers in memory that the processes of a host
// share, so that a pass begins everywhere within a fraction of a microsecond.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "hw/run/processes.h"
#include "hw/trace/clock.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Waits for `done()`; gives the core away after some 100 us, or threads that share a core would
/// wait for each other for a whole time slice.
template <class Done>
void spin_until(Done done) {
  constexpr int kSpins = 20'000;
  for (int spins = 0; !done(); ++spins) {
    if (spins < kSpins) {
      relax_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

/// One barrier, in shared memory (all zero to begin with). Can be used again and again.
struct alignas(64) BarrierSlot {
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::uint32_t> generation{0};

  /// Returns when `parties` threads have called. The last one calls `before_release`, whose writes
  /// the others see.
  template <class BeforeRelease>
  void arrive_and_wait(std::uint32_t parties, BeforeRelease before_release) {
    const std::uint32_t mine = generation.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == parties) {
      arrived.store(0, std::memory_order_relaxed);
      before_release();
      generation.fetch_add(1, std::memory_order_release);
      return;
    }
    spin_until([&] { return generation.load(std::memory_order_acquire) != mine; });
  }
  void arrive_and_wait(std::uint32_t parties) {
    arrive_and_wait(parties, [] {});
  }

  /// For one of the parties: waits for `others`, which call follow(), then runs `between` and lets
  /// all go.
  template <class Between>
  void lead(std::uint32_t others, Between between) {
    spin_until([&] { return arrived.load(std::memory_order_acquire) == others; });
    arrived.store(0, std::memory_order_relaxed);
    between();
    generation.fetch_add(1, std::memory_order_release);
  }
  void follow() {
    const std::uint32_t mine = generation.load(std::memory_order_acquire);
    arrived.fetch_add(1, std::memory_order_acq_rel);
    spin_until([&] { return generation.load(std::memory_order_acquire) != mine; });
  }
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared between processes");

/// What the processes of one host share while a scenario runs.
class SharedState {
 public:
  SharedState(const Processes& processes, std::size_t host_barriers);

  /// Waits for all processes, on all hosts. The moment that those of a host leave together, on
  /// clock.h's clock.
  std::int64_t wait_for_pass(const Processes& processes);

  BarrierSlot& host_barrier(BarrierId id) { return barriers()[id.value]; }

  /// How many operations each local process has completed; the watchdogs write and read it.
  std::atomic<std::uint64_t>& progress(int local_rank) {
    return progress_slots()[local_rank].value;
  }
  std::uint64_t local_progress() const;
  /// What is known of the other hosts' (guard/host_messages.h).
  void set_remote_progress(std::uint64_t sum) { header().remote_progress.store(sum); }
  std::uint64_t total_progress() const { return local_progress() + header().remote_progress; }

  /// True for the first process of the host whose run failed: it writes down why, and ends all.
  bool claim_failure() { return !header().failed.exchange(true); }
  bool has_failed() const { return header().failed.load(); }

 private:
  struct alignas(64) Progress {
    std::atomic<std::uint64_t> value{0};
  };
  struct Header {
    BarrierSlot pass;
    alignas(64) std::atomic<std::int64_t> released_ns{0};
    std::atomic<bool> failed{false};
    std::atomic<std::uint64_t> remote_progress{0};
  };
  static std::size_t bytes(std::size_t local_processes, std::size_t host_barriers);
  Header& header() const;
  Progress* progress_slots() const;
  BarrierSlot* barriers() const;

  std::size_t local_processes_;
  SharedMemory memory_;
};

/// Semaphores between the host threads of one process.
class Signals {
 public:
  explicit Signals(std::size_t count) : counts_(count) {}
  void signal(SignalId id) { counts_[id.value].fetch_add(1, std::memory_order_release); }
  /// Takes one as soon as there is one. False: close() came first, the run ends.
  [[nodiscard]] bool wait(SignalId id);
  /// Takes one if there is one.
  bool try_take(SignalId id);
  /// Lets everybody go who waits: host functions on the driver's threads outlive a failed pass.
  void close() { closed_.store(true, std::memory_order_release); }
  /// Forgets what the last pass left.
  void reset();

 private:
  std::atomic<bool> closed_{false};
  std::vector<std::atomic<std::int64_t>> counts_;
};

}  // namespace foretrace::hw
