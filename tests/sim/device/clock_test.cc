// The clock that products pull down: in shares of the rested clock, over time.
#include "sim/device/clock.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sim/engine/engine.h"

namespace foretrace::test {
namespace {

using namespace std::chrono_literals;
using sim::Clock;

TimePoint at(Duration time) { return TimePoint{} + time; }

TEST(Clock, FallsSlowlyAndComesBackFaster) {
  Clock clock{{.load = 100ms, .rest = 20ms}};
  clock.towards(at(0ms), 0.2);
  EXPECT_NEAR(clock.lost(at(100ms)), 0.2 * (1 - 0.36788), 1e-5);
  clock.towards(at(100ms), 0);
  EXPECT_NEAR(clock.lost(at(120ms)), 0.126424 * 0.36788, 1e-5);
  EXPECT_NEAR(clock.lost(at(1000ms)), 0, 1e-12);
}

TEST(Clock, BeginsLowerDownBesideKernelsThatTakeLess) {
  Clock clock{{.load = 100ms, .rest = 20ms, .mixed = 0.5}};
  clock.towards(at(0ms), -0.1, true);
  clock.towards(at(1ms), 0.4, true);
  EXPECT_NEAR(clock.lost(at(1ms)), 0.2, 1e-9);
  clock.towards(at(1ms), -0.1, true);
  EXPECT_NEAR(clock.lost(at(101ms)), -0.1 + 0.3 * 0.36788, 1e-5) << "up as slowly as down";
}

TEST(Clock, CountsAPauseAmongKernelsThatAverageAsLongAsItLasts) {
  Clock clock{{.load = 100ms, .rest = 20ms, .idle = -0.2}};
  clock.towards(at(0ms), 0.3, true);
  const double before = clock.lost(at(1000ms));
  clock.rest(at(1000ms));
  EXPECT_NEAR(clock.lost(at(1010ms)), -0.2 + (before + 0.2) * 0.90484, 1e-5);
  Clock alone{{.load = 100ms, .rest = 20ms, .idle = -0.2}};
  alone.towards(at(0ms), 0.3);
  alone.rest(at(1000ms));
  EXPECT_NEAR(alone.lost(at(1020ms)), 0.3 * 0.36788, 1e-4);
}

TEST(Clock, WithoutTimesFollowsAtOnce) {
  Clock clock{{}};
  clock.towards(at(1ms), 0.1);
  EXPECT_EQ(clock.lost(at(1ms)), 0.1);
}

}  // namespace
}  // namespace foretrace::test
