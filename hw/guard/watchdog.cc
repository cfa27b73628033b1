#include "hw/guard/watchdog.h"

#include <utility>

#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

}  // namespace

bool HangDetector::hangs(std::uint64_t progress, std::int64_t now_ns) {
  if (!last_ || last_->progress != progress) last_ = Seen{progress, now_ns};
  return now_ns - last_->since_ns >= timeout_ns_;
}

Watchdog::Watchdog(std::chrono::nanoseconds timeout, std::function<std::uint64_t()> progress,
                   std::function<void()> on_hang)
    : detector_{timeout},
      progress_{std::move(progress)},
      on_hang_{std::move(on_hang)},
      thread_{[this] { watch(); }} {}

Watchdog::~Watchdog() {
  {
    const std::scoped_lock lock{mutex_};
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::arm() {
  const std::scoped_lock lock{mutex_};
  detector_.reset();
  armed_ = true;
}

void Watchdog::disarm() {
  const std::scoped_lock lock{mutex_};
  armed_ = false;
}

void Watchdog::watch() {
  std::unique_lock lock{mutex_};
  while (!stop_) {
    changed_.wait_for(lock, kPoll, [this] { return stop_; });
    const bool hangs = !stop_ && armed_ && detector_.hangs(progress_(), now_ns());
    if (!hangs) continue;
    // Unlocked: a main thread that comes back after all must not wait here, it is ended anyway.
    armed_ = false;
    lock.unlock();
    on_hang_();
    lock.lock();
  }
}

}  // namespace foretrace::hw
