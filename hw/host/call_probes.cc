#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include "hw/execute/cpu_team.h"
#include "hw/host/probes.h"
#include "hw/host/timer.h"

namespace foretrace::hw {
namespace {

using enum MeasuredUnit;
using namespace std::chrono_literals;

constexpr auto kUntilAsleep = 200us;  // a thread that waits sleeps by then

/// Hz of a core: a chain of additions takes a cycle each.
double clock_rate() {
  constexpr std::uint64_t kTurns = 500'000;
  constexpr double kAdditions = 8;
  std::uint64_t sum = 1;
  const double seconds = seconds_of([&] {
    for (std::uint64_t i = 0; i < kTurns; ++i) {
#define FORETRACE_ADD \
  sum += 3;           \
  asm volatile("" : "+r"(sum));
      FORETRACE_ADD FORETRACE_ADD FORETRACE_ADD FORETRACE_ADD FORETRACE_ADD FORETRACE_ADD
          FORETRACE_ADD FORETRACE_ADD
#undef FORETRACE_ADD
    }
  });
  return kAdditions * static_cast<double>(kTurns) / seconds;
}

Probe clocks(std::uint32_t cores) {
  return {{{"clock of a core alone", Clock}, {"clock beside all cores", Clock}}, [cores] {
            std::atomic<bool> stop{false};
            const double alone = clock_rate();
            std::vector<std::thread> others;
            for (std::uint32_t i = 1; i < cores; ++i) {
              others.emplace_back([&] {
                while (!stop) clock_rate();
              });
            }
            std::this_thread::sleep_for(2ms);
            const double beside = clock_rate();
            stop = true;
            for (std::thread& other : others) other.join();
            return std::vector{alone, beside};
          }};
}

Probe clock_reads() {
  return {{{"clock_gettime", Time}}, [] {
            constexpr int kCalls = 20'000;
            std::int64_t sum = 0;
            const double seconds = seconds_of([&] {
              for (int i = 0; i < kCalls; ++i) sum ^= now_ns();
            });
            return std::vector{sum == 0 ? 0.0 : seconds / kCalls};
          }};
}

/// From an unlock to the return of the lock that slept for it.
double mutex_hand_over() {
  std::mutex mutex;
  std::int64_t given = 0, got = 0;
  mutex.lock();
  std::thread other{[&] {
    const std::lock_guard lock{mutex};
    got = now_ns();
  }};
  std::this_thread::sleep_for(kUntilAsleep);
  given = now_ns();
  mutex.unlock();
  other.join();
  return static_cast<double>(got - given) * 1e-9;
}

double condition_wake_up() {
  std::mutex mutex;
  std::condition_variable condition;
  bool is_set = false;
  std::int64_t given = 0, got = 0;
  std::thread other{[&] {
    std::unique_lock lock{mutex};
    condition.wait(lock, [&] { return is_set; });
    got = now_ns();
  }};
  std::this_thread::sleep_for(kUntilAsleep);
  {
    const std::lock_guard lock{mutex};
    is_set = true;
    given = now_ns();
  }
  condition.notify_one();
  other.join();
  return static_cast<double>(got - given) * 1e-9;
}

/// One way of a flag between two threads that spin: what host_signal is. The fastest of some rows
/// of turns: a thread that loses its core in one says nothing of the flag.
double signal_time() {
  constexpr int kRows = 8, kTurns = 50;
  std::atomic<int> flag{0};
  std::thread other{[&] {
    for (int i = 0; i < kRows * kTurns; ++i) {
      while (flag.load(std::memory_order_acquire) != 2 * i + 1) relax_cpu();
      flag.store(2 * i + 2, std::memory_order_release);
    }
  }};
  double least = 1;
  for (int row = 0; row < kRows; ++row) {
    const double seconds = seconds_of([&] {
      for (int i = row * kTurns; i < (row + 1) * kTurns; ++i) {
        flag.store(2 * i + 1, std::memory_order_release);
        while (flag.load(std::memory_order_acquire) != 2 * i + 2) relax_cpu();
      }
    });
    least = std::min(least, seconds / (2.0 * kTurns));
  }
  other.join();
  return least;
}

/// Threads that sleep are woken for nothing, and joined.
Probe wake_ups(std::uint32_t cores) {
  auto all = std::make_shared<CpuTeam>(cores);
  return {{{"host.parallel", Time},
           {"a mutex handed over to a thread that sleeps", Time},
           {"a condition wakes a thread", Time}},
          [=] {
            std::this_thread::sleep_for(1ms);
            const double parallel = seconds_of([&] { all->run(0, 0); });
            return std::vector{parallel, mutex_hand_over(), condition_wake_up()};
          }};
}

Probe signals() {
  return {{{"host.signal", Time}}, [] { return std::vector{signal_time()}; }};
}

/// No page of them is touched.
Probe mappings() {
  return {{{"mmap", Time, "64MiB"},
           {"munmap", Time, "64MiB"},
           {"malloc and free of a large block", Time, "64MiB"}},
          [] {
            constexpr std::size_t kBytes = std::size_t{64} << 20;
            void* at = nullptr;
            const double map = seconds_of([&] {
              at =
                  mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            });
            if (at == MAP_FAILED) return std::vector{0.0, 0.0, 0.0};
            const double unmap = seconds_of([&] { munmap(at, kBytes); });
            const double block = seconds_of([&] {
              void* volatile one = std::malloc(kBytes);
              std::free(one);
            });
            return std::vector{map, unmap, block};
          }};
}

}  // namespace

std::vector<Probe> call_probes(const HostSystem& system) {
  std::vector<Probe> probes{clocks(system.cores), clock_reads(), wake_ups(system.cores),
                            mappings()};
  if (system.cores > 1) probes.push_back(signals());
  return probes;
}

}  // namespace foretrace::hw
