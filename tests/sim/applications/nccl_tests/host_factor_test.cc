// The host's speed, found in a table whose host is known.
#include "sim/applications/nccl_tests/host_factor.h"

#include <gmock/gmock.h>

#include "models/machine/machine.h"
#include "models/what_if/what_if.h"
#include "sim/applications/nccl_tests/compare.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

/// An all-reduce of eight GPUs that one thread drives, as a machine whose host is so fast would show
/// it.
std::vector<NcclTestsSample> table_of(const std::string& host, std::uint64_t first = 256) {
  const Machine machine = load_machine_with("h100-nvswitch-8", {"host=" + host});
  NcclTestsPlan plan;
  plan.gpus = 8;
  for (std::uint64_t bytes = first; bytes <= first << 10; bytes *= 2) {
    plan.sizes.push_back({bytes, bytes / 4});
  }
  const auto rows = predict_nccl_tests(std::vector{plan}, machine).front();
  std::vector<NcclTestsSample> samples;
  for (const NcclTestsRow& row : rows) {
    NcclTestsSample& sample = samples.emplace_back();
    sample.plan = plan;
    sample.plan.sizes.clear();
    sample.bytes = row.size.bytes;
    sample.time_us = row.time_us;
    sample.file = "table.csv";
  }
  return samples;
}

TEST(HostFactor, IsFoundInATableOfAFasterHost) {
  const Machine machine = load_machine("h100-nvswitch-8");
  const auto comparisons = compare_nccl_tests(table_of("1.5x"), machine);
  const auto host = fit_host(comparisons, machine);
  ASSERT_TRUE(host);
  EXPECT_NEAR(host->factor, 1.5, 0.1);
  EXPECT_GT(host->before, 0.1);
  EXPECT_LT(host->after, 0.03);
  EXPECT_THAT(host_text(*host, machine),
              HasSubstr("times as fast as that of h100-nvswitch-8: with --with host=1."));
}

TEST(HostFactor, IsOneOfTheFilesOwnHost) {
  const Machine machine = load_machine("h100-nvswitch-8");
  const auto host = fit_host(compare_nccl_tests(table_of("1x"), machine), machine);
  ASSERT_TRUE(host);
  EXPECT_EQ(host->factor, 1);
  EXPECT_THAT(host_text(*host, machine), HasSubstr("this host is as fast as that of"));
}

TEST(HostFactor, IsNotAskedOfLargeSizes) {
  const Machine machine = load_machine("h100-nvswitch-8");
  EXPECT_FALSE(fit_host(compare_nccl_tests(table_of("1.5x", 1u << 20), machine), machine));
}

}  // namespace
}  // namespace foretrace
