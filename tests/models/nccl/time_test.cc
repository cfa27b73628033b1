// How long rings take, against what was measured on H200s with few channels.
#include <gtest/gtest.h>

#include "models/nccl/time/cost.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum CollectiveKind;

double kernel_us(const Machine& machine, const char* channels, std::uint32_t ranks,
                 CollectiveKind kind, Bytes size) {
  const Tuning tuning = tuning_for(machine, ranks, 1, {{"NCCL_MAX_CTAS", channels}});
  const Cost cost = collective_cost(machine, tuning, {kind, size});
  return 1e6 * (to_seconds(cost.latency) +
                static_cast<double>(cost.wire_bytes.count) / machine.rate(Param::NvlinkBandwidth));
}

TEST(NcclTime, OfFewChannelsIsThatOfTheirOwnRate) {
  const Machine machine = load_machine("h200-nvswitch-8");
  // nccl-tests with NCCL_MAX_CTAS, 1 GiB: reports/measured/nccl_tests/max_ctas_4.csv and so on.
  EXPECT_NEAR(kernel_us(machine, "4", 2, AllReduce, 1024_MiB) / 13074.9, 1, 0.1);
  EXPECT_NEAR(kernel_us(machine, "8", 4, AllReduce, 1024_MiB) / 8509.92, 1, 0.1);
  EXPECT_NEAR(kernel_us(machine, "8", 4, AllGather, 256_MiB) / 5258.76, 1, 0.15);
  EXPECT_NEAR(kernel_us(machine, "8", 2, Broadcast, 1024_MiB) / 6066.67, 1, 0.1);
}

TEST(NcclTime, OfAllChannelsHardlyDependsOnTheirRate) {
  const Machine machine = load_machine("h200-nvswitch-8");
  Machine unlimited = machine;
  unlimited.set(Param::NcclAllReduceChannelRate, {1e15, 0, ParameterClass::Assumed, "", ""});
  for (const Bytes size : {16_MiB, 256_MiB, 1024_MiB}) {
    const double limited = kernel_us(machine, "64", 4, AllReduce, size);
    EXPECT_NEAR(limited / kernel_us(unlimited, "64", 4, AllReduce, size), 1, 0.01);
  }
}

}  // namespace
}  // namespace foretrace::nccl
