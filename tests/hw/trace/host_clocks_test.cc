#include "hw/trace/host_clocks.h"

#include <gtest/gtest.h>

#include <array>

namespace foretrace::hw {
namespace {

TEST(ClockOffset, IsThatOfTheShortestRoundTrip) {
  // The other clock is 1000 ahead; the way there takes 10, 30 and 3 ns, the way back 40, 2 and 5.
  const std::array trips{RoundTrip{100, 1110, 150}, RoundTrip{200, 1230, 232},
                         RoundTrip{300, 1303, 308}};
  const ClockOffset offset = offset_of(trips);
  EXPECT_EQ(offset.ahead_ns, 999);
  EXPECT_EQ(offset.bound_ns, 4);
  EXPECT_EQ(offset.at_ns, 1303);
}

TEST(ClockOffset, IsNeverFurtherOffThanItsBound) {
  for (std::int64_t there = 0; there <= 7; ++there) {
    const std::array trips{RoundTrip{100, 100 + there - 50, 107}};
    const ClockOffset offset = offset_of(trips);
    EXPECT_LE(std::abs(offset.ahead_ns + 50), offset.bound_ns) << there;
  }
}

TEST(ClockDrift, IsWhatAClockGainsInItsTime) {
  const ClockOffset before{1'000, 10, 0};
  EXPECT_DOUBLE_EQ(drift_between(before, {3'000, 10, 2'000'000'000}), 1e-6);
  EXPECT_EQ(bound_between(before, {3'000, 15, 2'000'000'000}), 15);
}

TEST(ClockDrift, IsNoneWhereTheRoundTripsExplainTheDifference) {
  const ClockOffset before{1'000, 10, 0};
  const ClockOffset after{1'012, 5, 2'000'000};
  EXPECT_EQ(drift_between(before, after), 0);
  EXPECT_EQ(bound_between(before, after), 12 + 5) << "so far it may have been off at the end";
  EXPECT_EQ(drift_between(before, before), 0);
}

TEST(HostClocks, AreOneClockOnOneHost) {
  const Processes alone;
  const HostClocks clocks{alone};
  EXPECT_EQ(clocks.offset().ahead_ns, 0);
  EXPECT_EQ(bound_between_hosts(alone, 5), 0);
}

}  // namespace
}  // namespace foretrace::hw
