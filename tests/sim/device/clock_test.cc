// The clock that products pull down: in shares of the rested clock, over time.
#include "sim/device/clock.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/sim/unit_machine.h"

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

TEST(Clock, WithoutTimesFollowsAtOnce) {
  Clock clock{{}};
  clock.towards(at(1ms), 0.1);
  EXPECT_EQ(clock.lost(at(1ms)), 0.1);
}

}  // namespace
}  // namespace foretrace::test
