// RCCL's choice on eight MI300X, each number derived on the page.
#include "models/nccl/rules/rccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/rules/plan.h"
#include "models/nccl/time/collective_time.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using testing::HasSubstr;

class Rccl : public testing::Test {
 protected:
  Plan plan(Function function, Bytes bytes) const { return plan_of(tuning, {function, bytes}); }

  Machine machine = load_machine("mi300x-8");
  Tuning tuning = tuning_of(machine, 8, 1, Settings{});
};

TEST_F(Rccl, HasTwoChannelsForEachRingOfItsModel) { EXPECT_EQ(tuning.channels, 56u); }

TEST_F(Rccl, TakesLlForASmallAllReduceAndOneChannel) {
  const Plan small = plan(Function::AllReduce, 8_KiB);
  EXPECT_EQ(small.algorithm, Algorithm::Ring);
  EXPECT_EQ(small.protocol, Protocol::LL);
  EXPECT_EQ(small.channels, 1u) << "256 threads, 64 bytes each";
  EXPECT_EQ(small.threads, 256u);
  // 12 us and 14 hops of 0.8; 336 GB/s times 0.08, times 8 ranks over 14 steps
  EXPECT_NEAR(small.price_us, 12 + 14 * 0.8 + 8192 / (336e3 * 0.08 * 8 / 14), 1e-3);
}

TEST_F(Rccl, TakesSimpleForALargeAllReduceAndEveryChannel) {
  const Plan large = plan(Function::AllReduce, 64_MiB);
  EXPECT_EQ(large.algorithm, Algorithm::Ring);
  EXPECT_EQ(large.protocol, Protocol::Simple);
  EXPECT_EQ(large.channels, 56u);
  EXPECT_NEAR(large.price_us, 17 + 14 * 2.1 + (64 << 20) / (336e3 * 8 / 14), 1e-2);
}

// 23.2 us + n / 15,360 = 46.4 us + n / 192,000 at n = 387 kB.
TEST_F(Rccl, ChangesItsProtocolWhereThePricesCross) {
  EXPECT_EQ(plan(Function::AllReduce, {387'000}).protocol, Protocol::LL);
  EXPECT_EQ(plan(Function::AllReduce, {388'000}).protocol, Protocol::Simple);
}

// A broadcast: 12.8 us + n / (26,880 * 1.65) = 19.1 us + n / 336,000 at n = 322 kB.
TEST_F(Rccl, LetsLlCarryMoreOfABroadcast) {
  EXPECT_EQ(plan(Function::Broadcast, {321'000}).protocol, Protocol::LL);
  EXPECT_EQ(plan(Function::Broadcast, {324'000}).protocol, Protocol::Simple);
}

TEST_F(Rccl, GivesEveryChannelOfAGroupTheSameBytes) {
  const Request request{Function::AllReduce, 56_MiB};
  const auto plans = plan_group(tuning, {request, request});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].channels, 28u) << "2 MiB each";
  EXPECT_EQ(plans[1].channels, 28u);
  EXPECT_EQ(plans[0].first_channel + plans[1].first_channel, 28u) << "beside each other";
  EXPECT_EQ(kernel_channels(plans), 56u);
}

TEST_F(Rccl, NeverTakesLl128OrATreeOfSimple) {
  for (const Candidate& candidate : priced_candidates(tuning, {Function::AllReduce, 1_MiB})) {
    if (candidate.protocol == Protocol::LL128) {
      EXPECT_NE(candidate.out, "");
    }
    if (candidate.algorithm == Algorithm::Tree && candidate.protocol == Protocol::Simple) {
      EXPECT_THAT(candidate.out, HasSubstr("within one MI300X node"));
    }
  }
}

TEST_F(Rccl, TakesTheTimeOfItsOwnPrice) {
  Reading read{machine};
  const auto time = collective_time(read, tuning, {CollectiveKind::AllReduce, 64_MiB});
  EXPECT_EQ(time.model, Model::Price);
  EXPECT_NEAR(time.terms.seconds, plan(Function::AllReduce, 64_MiB).price_us * 1e-6, 1e-9);
}

TEST_F(Rccl, SaysWhatMscclWouldDoInstead) {
  EXPECT_THAT(msccl_instead({Function::AllReduce, 64_KiB}), HasSubstr("LL on 4 channels"));
  EXPECT_THAT(msccl_instead({Function::AllReduce, 64_KiB + 1_B}), HasSubstr("LL on 8 channels"));
  EXPECT_THAT(msccl_instead({Function::AllReduce, 16_MiB}), HasSubstr("Simple on 8 channels"));
  EXPECT_EQ(msccl_instead({Function::AllReduce, 17_MiB}), "");
  EXPECT_EQ(msccl_instead({Function::Broadcast, 64_KiB}), "");
}

/// Which RCCL is a copy of: fewer GPUs than a node, sends and receives.
TEST_F(Rccl, TakesNcclsRulesOfItsReleaseWhereItsOwnAreNotKnown) {
  const Tuning four = tuning_of(machine, 4, 1, Settings{});
  EXPECT_FALSE(four.constants->is_rccl);
  EXPECT_EQ(text_of(four.version), "2.21.5");
  Reading read{machine};
  EXPECT_GT(send_recv_time(read, tuning, 1_MiB, true).terms.seconds, 0);
}

TEST_F(Rccl, RefusesReleasesWhoseRulesAreNotKnown) {
  EXPECT_THROW(parse_rccl_version("rccl-2.18.3"), UsageError);
  EXPECT_EQ(parse_rccl_version("2.28.3"), std::nullopt);
}

}  // namespace
}  // namespace foretrace::nccl
