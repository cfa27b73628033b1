// Notices that nothing moves any more. A thread of its own watches a counter of completed
// operations, common to the processes of a host: a process that waits for a busy one does not hang.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace foretrace::hw {

/// When has nothing happened for too long? Pure, so that it is tested without waiting.
class HangDetector {
 public:
  explicit HangDetector(std::chrono::nanoseconds timeout) : timeout_ns_{timeout.count()} {}

  /// The counter now; true once it has not changed for the timeout.
  bool hangs(std::uint64_t progress, std::int64_t now_ns);
  /// Forgets what it saw: nothing was being watched meanwhile.
  void reset() { last_.reset(); }

 private:
  struct Seen {
    std::uint64_t progress;
    std::int64_t since_ns;
  };
  std::int64_t timeout_ns_;
  std::optional<Seen> last_;
};

class Watchdog {
 public:
  /// `progress` is called some ten times a second while a pass runs; `on_hang` once, from the
  /// watchdog's thread: it must end the process.
  Watchdog(std::chrono::nanoseconds timeout, std::function<std::uint64_t()> progress,
           std::function<void()> on_hang);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void arm();
  void disarm();

 private:
  void watch();

  HangDetector detector_;
  std::function<std::uint64_t()> progress_;
  std::function<void()> on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace foretrace::hw
