#include "models/machine/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretrace {
namespace {

using namespace literals;

Machine two_parameters() {
  Machine machine;
  machine.set(Param::H2dLatency, {2e-6, 0, ParameterClass::Fit, {}, {}});
  machine.set(Param::H2dBandwidth, {50e9, 0, ParameterClass::Fit, {}, {}});
  return machine;
}

double copy_seconds(Reading& read, Bytes size) {
  return read.seconds(Param::H2dLatency) +
         static_cast<double>(size.count) / read.rate(Param::H2dBandwidth);
}

TEST(Reading, NotesWhatWasReadAndNothingElse) {
  const Machine machine = two_parameters();
  Reading read{machine};
  EXPECT_FALSE(read.has(Param::D2hBandwidth));
  EXPECT_EQ(read.time(Param::H2dLatency), 2_us);
  EXPECT_TRUE(read.used().test(static_cast<std::size_t>(Param::H2dLatency)));
  EXPECT_EQ(read.used().count(), 1U);
}

TEST(Shares, SayHowMuchOfATimeEachParameterIs) {
  // 400 kB at 50 GB/s take 8 us, with the fixed 2 us 10 us: a fifth is the latency, and a rate
  // that is 1 % faster makes four fifths 1 % shorter.
  const std::vector<Share> shares =
      shares_of(two_parameters(), [](Reading& read) { return copy_seconds(read, {400'000}); });
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].param, Param::H2dBandwidth);
  EXPECT_NEAR(shares[0].share, -0.8, 1e-3);
  EXPECT_EQ(shares[1].param, Param::H2dLatency);
  EXPECT_NEAR(shares[1].share, 0.2, 1e-3);
}

// The calls of a group share what it takes: a thousand of them take as many calls as one.
TEST(Shares, OfManyTimesAreThoseOfEachAndTakeAsManyCallsAsOne) {
  std::size_t calls = 0;
  const auto shares = shares_of_each(two_parameters(), [&](Reading& read) {
    ++calls;
    std::vector<double> seconds(1000, 0.0);
    seconds[1] = copy_seconds(read, {400'000});
    seconds[999] = copy_seconds(read, {1'000'000'000});
    return seconds;
  });
  EXPECT_EQ(calls, 3U) << "as it is, and with each of two parameters moved";
  ASSERT_EQ(shares.size(), 1000U);
  EXPECT_TRUE(shares[0].empty()) << "no time, no shares";
  ASSERT_EQ(shares[1].size(), 2U);
  EXPECT_NEAR(shares[1][0].share, -0.8, 1e-3);
  ASSERT_EQ(shares[999].size(), 1U);
  EXPECT_EQ(shares[999][0].param, Param::H2dBandwidth);
}

TEST(Shares, LeaveOutWhatHardlyMatters) {
  const std::vector<Share> shares = shares_of(
      two_parameters(), [](Reading& read) { return copy_seconds(read, {1'000'000'000}); });
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].param, Param::H2dBandwidth);
}

}  // namespace
}  // namespace foretrace
