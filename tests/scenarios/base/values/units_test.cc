#include "scenarios/base/values/units.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(Bandwidth, MovesOneMegabyteInFortyMicrosecondsAtTwentyFiveGigabytesPerSecond) {
  EXPECT_EQ(Bytes{1'000'000} / 25.0_GBps, 40us);  // 1e6 B / 25e9 B/s = 4e-5 s
}

TEST(Bandwidth, CountsGigabytesInPowersOfTen) {
  EXPECT_EQ(Bytes{1'000'000'000} / 1.0_GBps, 1s);
  EXPECT_GT(1024_MiB / 1.0_GBps, 1s);  // 1 GiB is 7.4 % more than 1 GB
}

TEST(Duration, RoundsToTheNearestNanosecondAwayFromZero) {
  EXPECT_EQ(round_to_ns(1499_ps), 1);
  EXPECT_EQ(round_to_ns(1500_ps), 2);
  EXPECT_EQ(round_to_ns(Duration{-1500}), -2);
  EXPECT_EQ(round_to_ns(Duration{-499}), 0);
}

}  // namespace
}  // namespace foretrace
