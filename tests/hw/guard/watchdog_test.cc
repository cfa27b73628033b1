#include "hw/guard/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>

namespace foretrace::hw {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(HangDetector, FiresOnceNothingMovedForTheTimeout) {
  HangDetector detector{30s};
  EXPECT_FALSE(detector.hangs(5, 0));
  EXPECT_FALSE(detector.hangs(5, 29 * kSecond));
  EXPECT_TRUE(detector.hangs(5, 30 * kSecond));
}

TEST(HangDetector, StartsAnewWithEveryProgress) {
  HangDetector detector{30s};
  EXPECT_FALSE(detector.hangs(5, 0));
  EXPECT_FALSE(detector.hangs(6, 29 * kSecond));
  EXPECT_FALSE(detector.hangs(6, 58 * kSecond));
  EXPECT_TRUE(detector.hangs(6, 59 * kSecond));
}

TEST(HangDetector, ForgetsTheTimeItDidNotWatch) {
  HangDetector detector{30s};
  EXPECT_FALSE(detector.hangs(5, 0));
  detector.reset();
  EXPECT_FALSE(detector.hangs(5, 100 * kSecond));
}

TEST(Watchdog, CallsOnceWhenArmedAndStuck) {
  std::atomic<int> calls{0};
  Watchdog watchdog{50ms, [] { return std::uint64_t{7}; }, [&] { ++calls; }};
  watchdog.arm();
  while (calls == 0) std::this_thread::sleep_for(10ms);  // at last ctest's own limit
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(calls, 1);
}

TEST(Watchdog, SleepsUnlessArmed) {
  std::atomic<int> calls{0};
  Watchdog watchdog{1ms, [] { return std::uint64_t{7}; }, [&] { ++calls; }};
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(calls, 0);
}

TEST(Watchdog, LeavesARunAloneThatMoves) {
  std::atomic<int> calls{0};
  std::atomic<std::uint64_t> progress{0};
  Watchdog watchdog{1ms, [&] { return ++progress; }, [&] { ++calls; }};
  watchdog.arm();
  while (progress < 10) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace foretrace::hw
