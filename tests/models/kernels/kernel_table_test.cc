// Times of captured kernels from the table of measured ones.
#include "models/kernels/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "models/cost/library.h"
#include "models/machine/machine.h"
#include "models/machine/reading.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::kernels {
namespace {

constexpr const char* kNumbers =
    "#: hbm 1e12\n#: peak 1e15\n#: base_us 1\n#: memory 1\n#: compute 0.5\n#: nearest 2\n#: soft "
    "0.01\n#: joined_most 4096\n#: thread_bytes 16\n"
    "kernel,bytes,flops,grid,block,inner,joined,channels,us\n";

std::filesystem::path table(const std::string& rows) {
  const auto path = std::filesystem::path{::testing::TempDir()} / "kernels.csv";
  std::ofstream{path} << kNumbers << rows;
  return path;
}

Asked asked(const std::string& name, double bytes, double flops = 0) {
  return {{name, 8, 128, 64, 64, 1}, bytes, flops};
}

TEST(KernelTable, GivesAMeasuredKernelItsTime) {
  const KernelTable one{
      table("copy.1,1000000,0,8,128,64,64,1,4\ncopy.1,4000000,0,8,128,64,64,1,20\n")};
  const Estimate estimate = one.estimate(asked("copy.1", 1e6));
  EXPECT_EQ(estimate.basis, Basis::Measured);
  // 1 us and 1 MB at 1 TB/s are 2 us; the other row, 4 in squared distance away, counts 1 in
  // 160,000
  EXPECT_NEAR(one.seconds(asked("copy.1", 1e6), estimate, 1e12, 1e15), 4e-6, 1e-9);
}

TEST(KernelTable, RefusesCountsThatNoLaunchHasAndDivisorsOfZero) {
  const auto refusal = [](const std::filesystem::path& file) -> std::string {
    try {
      KernelTable{file};
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(table("copy.1,1,0,1e300,128,64,64,1,4\n")),
              ::testing::HasSubstr("'1e300' is too large"));
  EXPECT_THAT(refusal(table("copy.1,1,0,1e16,128,64,64,1,4\n")),
              ::testing::HasSubstr("'1e16' is too large a count"));
  EXPECT_THAT(refusal(table("copy.1,1,0,8,1e12,64,64,1,4\n")),
              ::testing::HasSubstr("'1e12' is too large a count"));
  for (const char* nearest : {"0", "0.5", "1e20"}) {
    EXPECT_THAT(refusal(table(std::string{"#: nearest "} + nearest + "\n")),
                ::testing::HasSubstr("'#: nearest' is a whole number from 1 to 4096"));
  }
  for (const char* divisor : {"soft", "memory", "compute", "hbm"}) {
    EXPECT_THAT(refusal(table(std::string{"#: "} + divisor + " 0\n")),
                ::testing::HasSubstr(std::string{"'#: "} + divisor + "' is above 0"));
  }
}

TEST(KernelTable, TakesBetweenTwoSizesTheMeanOfTheirFactors) {
  const KernelTable one{
      table("copy.1,1000000,0,8,128,64,64,1,4\ncopy.1,4000000,0,8,128,64,64,1,20\n")};
  const Estimate estimate =
      one.estimate(asked("copy.1", 2e6));  // as far from both: factors 2 and 4
  EXPECT_EQ(estimate.basis, Basis::Kernel);
  EXPECT_NEAR(estimate.factor, 2.828, 0.01);
}

TEST(KernelTable, FallsBackToTheFamilyAndToThePlainTime) {
  const KernelTable one{table("copy.1,1000000,0,8,128,64,64,1,4\n")};
  EXPECT_EQ(one.estimate(asked("copy.2", 1e6)).basis, Basis::Family);
  EXPECT_NEAR(one.estimate(asked("copy.2", 1e6)).factor, 2, 1e-6);
  EXPECT_EQ(one.estimate(asked("sort.1", 1e6)).basis, Basis::Plain);
  EXPECT_EQ(one.estimate(asked("sort.1", 1e6)).factor, 1);
}

TEST(KernelTable, CountsFlopsAtTheShareOfThePeakThatIsReached) {
  const KernelTable one{table("copy.1,1000000,0,8,128,64,64,1,4\n")};
  const Asked product = asked("product.1", 0, 1e12);
  EXPECT_NEAR(one.seconds(product, one.estimate(product), 1e12, 1e15), 1e-6 + 2e-3, 1e-9);
}

TEST(KernelTable, HasTermsOfItsOwnForAKernelWhoseThreadsDecide) {
  const KernelTable one{table("#k norm.1 2 0 0 3\nnorm.1,1000000,0,8,128,64,64,1,4\n")};
  // 2 us, and 8 blocks of 128 threads of 16 bytes, three times, at 1 TB/s: the bytes do not count
  const double plain = 2e-6 + 3.0 * 8 * 128 * 16 / 1e12;
  EXPECT_NEAR(one.estimate(asked("norm.1", 9e6)).factor, 4e-6 / plain, 1e-6);
  EXPECT_NEAR(one.seconds(asked("norm.1", 9e6), one.estimate(asked("norm.1", 9e6)), 0.5e12, 1e15),
              4e-6 / plain * (2e-6 + (plain - 2e-6) * 2), 1e-12);
  // its family's rule is that of all kernels
  EXPECT_NEAR(one.estimate(asked("norm.2", 1e6)).factor, 2, 1e-6);
}

TEST(KernelTable, RefusesWhatIsNoTable) {
  EXPECT_THROW(KernelTable{table("copy.1,1,2\n")}, UsageError);
  EXPECT_THROW(KernelTable{table("#k copy.1 1 2\n")}, UsageError);
  EXPECT_THROW(KernelTable{table("copy.1,x,0,8,128,64,64,1,4\n")}, UsageError);
  EXPECT_THROW(KernelTable{table("copy.1,1,0,8,128,64,64,1,0\n")}, UsageError);
}

TEST(KernelTable, ThatIsShippedHasThousandsOfRowsAndKnowsThem) {
  const KernelTable& shipped = shipped_kernels();
  EXPECT_GT(shipped.size(), 5000U);
  const Asked fill{
      {"vectorized_elementwise_kernel.76555a334ea34cfb", 513024, 128, 128256, 525336576, 128256},
      4202692608.0,
      0};
  EXPECT_NE(shipped.estimate(fill).basis, Basis::Plain);
}

TEST(CapturedCost, WhatFitsIntoTheLevel2CacheIsNoFasterWithMoreMemoryBandwidth) {
  const Machine h100 = load_machine("h100-nvswitch-8"), h200 = load_machine("h200-nvswitch-8");
  const auto seconds = [](const Machine& machine, double bytes) {
    Reading read{machine};
    return to_seconds(cost::captured_cost(read, {{.name = "nobody_knows_it.0"}, bytes, 0}).alone);
  };
  EXPECT_NEAR(seconds(h200, 20e6) / seconds(h100, 20e6), 1, 0.01);
  EXPECT_NEAR(seconds(h200, 2e9) / seconds(h100, 2e9), 3.35 / 4.8, 0.05);
}

}  // namespace
}  // namespace foretrace::kernels
