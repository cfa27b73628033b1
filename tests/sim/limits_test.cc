#include "sim/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace foretrace {
namespace {

/// Of 405 billion parameters in 32 stages: each of 16,384 processes would have 5,000 buffers.
TEST(TooLargeToSimulate, CountsTheObjectsOfProcessesThatRun) {
  Program program;
  program.processes = 16'384;
  program.buffers.resize(5'000);
  const Diagnostics all = too_large_to_simulate(program);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all.front().message, testing::HasSubstr("16384 processes with 0 streams and 5001 "));
  std::vector<bool> one_of_each(program.processes, false);
  one_of_each[0] = one_of_each[512] = true;
  EXPECT_TRUE(too_large_to_simulate(program, one_of_each).empty());
}

}  // namespace
}  // namespace foretrace
