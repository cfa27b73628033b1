#include "reports/compare/host_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Origin predicted(std::int64_t launch_ns) {
  Origin origin;
  origin.machine = "h200-1";
  origin.launch_ns = launch_ns;
  return origin;
}

Origin measured(const std::vector<std::vector<std::int64_t>>& starts) {
  Origin origin;
  origin.measured = true;
  for (const auto& launch_ns : starts) {
    ProcessStart start;
    start.launch_ns = launch_ns;
    origin.starts.push_back(std::move(start));
  }
  return origin;
}

TEST(HostSpeed, IsTheMedianOverStartsOfTheMeanOverProcesses) {
  const auto speed = host_speed(predicted(4000), measured({{3000, 3400}, {2000, 2000}, {5000}}));
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->measured_ns, 3200);
  EXPECT_EQ(speed->fastest_ns, 2000);
  EXPECT_EQ(speed->slowest_ns, 5000);
  EXPECT_EQ(speed->starts, 3U);
  EXPECT_DOUBLE_EQ(speed->factor(), 1.25);
}

TEST(HostSpeed, OfAStartThatDoesNotSayItCountsForNothing) {
  const auto speed = host_speed(predicted(4000), measured({{}, {5000}}));
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->starts, 1U);
  EXPECT_FALSE(host_speed(predicted(4000), measured({{}, {}})));
}

TEST(HostSpeed, NeedsAPredictionAndAMeasurement) {
  EXPECT_FALSE(host_speed(predicted(4000), predicted(4000)));
  EXPECT_FALSE(host_speed(measured({{4000}}), measured({{4000}})));
  EXPECT_FALSE(host_speed(Origin{}, measured({{4000}}))) << "an older prediction";
}

TEST(HostSpeedWords, NameTheOptionThatPredictsForTheHost) {
  EXPECT_EQ(host_speed_words(predicted(3850), measured({{3162}, {2980}, {3301}})),
            "Host: a kernel's launch took 3.162 us to call (2.980 us .. 3.301 us in 3 starts), "
            "3.850 us predicted: this host was 1.22 times as fast. simulate --with host=1.22x "
            "predicts for it.");
}

TEST(HostSpeedWords, AdviseNothingWhereTheHostIsAsPredicted) {
  EXPECT_EQ(host_speed_words(predicted(4000), measured({{4100}})),
            "Host: a kernel's launch took 4.100 us to call, 4.000 us predicted.");
}

TEST(HostSpeedWords, OfferNoFactorOnAHostThatWasChangedAlready) {
  Origin changed = predicted(3850);
  changed.machine = "h200-1 with host=0.8x";
  EXPECT_THAT(host_speed_words(changed, measured({{3162}})),
              AllOf(HasSubstr("1.22 times as fast"), Not(HasSubstr("--with"))));
}

TEST(HostSpeedWords, OfferNoFactorThatNoHostHas) {
  for (const std::int64_t launch_ns : {std::int64_t{1}, std::int64_t{1'000'000'000'000}}) {
    EXPECT_THAT(host_speed_words(predicted(3850), measured({{launch_ns}})),
                AllOf(HasSubstr("no host's speed"), Not(HasSubstr("--with"))));
  }
}

TEST(HostSpeedWords, OfferTheFactorWhereSomethingElseWasChanged) {
  Origin changed = predicted(3850);
  changed.machine = "h200-1 with pcie=0.5x";
  EXPECT_THAT(host_speed_words(changed, measured({{3162}})), HasSubstr("--with host=1.22x"));
}

}  // namespace
}  // namespace foretrace
