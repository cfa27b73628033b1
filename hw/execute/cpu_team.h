// Operators on the CPU: threads that wait for work, and the work. Knows nothing of CUDA.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace foretrace::hw {

/// Cores that this process may use: those it is bound to, and no more than its control group gives
/// it.
std::uint32_t cores_of_this_process();

/// Some threads that work together, again and again. They sleep in between, and are not bound to
/// cores. Each has memory of its own that it goes through, 64 MiB at least and so much that the
/// team's is 1 GiB: every call goes on where the last one ended, so that none finds its data in a
/// cache.
class CpuTeam {
 public:
  explicit CpuTeam(std::uint32_t threads);
  ~CpuTeam();
  CpuTeam(const CpuTeam&) = delete;
  CpuTeam& operator=(const CpuTeam&) = delete;

  /// `flops` float32 operations and `bytes` read and written, shared evenly; returns when all are
  /// done. Arithmetic is done on what comes from memory, between the load and the store.
  void run(double flops, double bytes);
  std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()); }

 private:
  struct Memory;
  void work(Memory& memory);

  std::size_t floats_;  ///< of each thread's memory
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::uint64_t call_ = 0;
  std::uint32_t busy_ = 0;
  bool stop_ = false;
  double flops_ = 0, bytes_ = 0;  ///< of one thread
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::thread> threads_;
};

/// The teams of one process: a call takes an idle one of its size, or makes it.
class CpuTeams {
 public:
  /// `threads`: 0 is one for each core of this process.
  void run(std::uint32_t threads, double flops, double bytes);

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<CpuTeam>> idle_;
};

}  // namespace foretrace::hw
