// Registered buffers: when ranks may write into each other's, and what that changes.
#include "models/nccl/rules/registration.h"

#include <gtest/gtest.h>

#include "models/nccl/rules/plan.h"
#include "models/nccl/time/collective_time.h"
#include "tests/models/nccl/small_machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum CollectiveKind;

constexpr Offer kNothing{};
constexpr Offer kMappable{true, false};
constexpr Offer kRegistered{true, true};

TEST(Registration, IsOfMemoryThatOtherProcessesCanMap) {
  EXPECT_TRUE(can_map(Settings{}, true, true));
  EXPECT_FALSE(can_map(Settings{}, false, false)) << "cudaMalloc";
  EXPECT_FALSE(can_map(Settings{{"NCCL_CUMEM_ENABLE=0"}}, true, false)) << "cudaMalloc, too";
  const Settings legacy{{"NCCL_LEGACY_CUDA_REGISTER=1"}};
  EXPECT_TRUE(can_map(legacy, false, false));
  EXPECT_FALSE(can_map(legacy, false, true)) << "a process cannot open its own handle";
}

TEST(Registration, IsMadeByACallOrByAGraph) {
  const auto may = [](const Settings& settings, Offer offer, bool captured) {
    return may_write_directly(settings, AllGather, false, offer, offer, captured);
  };
  EXPECT_FALSE(may({}, kMappable, false));
  EXPECT_TRUE(may({}, kMappable, true));
  EXPECT_FALSE(may(Settings{{"NCCL_GRAPH_REGISTER=0"}}, kMappable, true));
  EXPECT_TRUE(may({}, kRegistered, false));
  EXPECT_FALSE(may(Settings{{"NCCL_LOCAL_REGISTER=0"}}, kRegistered, false));
  EXPECT_FALSE(may({}, kNothing, true));
}

TEST(Registration, OfACallNeedsBothBuffersAndOfAGraphTheOneThatIsWritten) {
  EXPECT_FALSE(may_write_directly({}, Broadcast, false, kMappable, kRegistered, false));
  EXPECT_TRUE(may_write_directly({}, Broadcast, false, kNothing, kMappable, true));
}

TEST(Registration, HelpsNoSumThatGoesThroughNcclsBuffersInEveryStep) {
  for (const CollectiveKind kind : {ReduceScatter, Reduce}) {
    EXPECT_FALSE(may_write_directly({}, kind, false, kRegistered, kRegistered, true));
  }
  EXPECT_TRUE(may_write_directly({}, AllReduce, false, kRegistered, kRegistered, false));
  EXPECT_FALSE(may_write_directly({}, AllReduce, true, kRegistered, kRegistered, false));
}

TEST(Registration, LetsSimpleTake16ChannelsOf24) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const Tuning tuning = tuning_for(machine, 2, 1, {});
  const auto plan = [&](Bytes bytes, bool direct) {
    Request request{Function::AllGather, bytes};
    request.direct = direct;
    return plan_of(tuning, request);
  };
  EXPECT_EQ(plan(256_MiB, false).channels, 24u);
  EXPECT_EQ(plan(256_MiB, true).channels, 16u);
  EXPECT_TRUE(plan(256_MiB, true).direct);
  EXPECT_EQ(plan(64_KiB, true).protocol, Protocol::LL);
  EXPECT_FALSE(plan(64_KiB, true).direct) << "LL has flags among its data";
}

TEST(Registration, CostsAnExchangeOfAddresses) {
  Machine machine = load_machine("h200-nvswitch-8");
  const Tuning tuning = tuning_for(machine, 2, 1, {});
  const auto seconds = [&](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
    Reading read{machine};
    Call call{AllToAll, 16_MiB};
    call.direct = true;
    return collective_time(read, tuning, call).terms.seconds;
  };
  EXPECT_NEAR(seconds(Param::NcclDirectExchange, 7e-6) - seconds(Param::NcclDirectExchange, 2e-6),
              5e-6, 1e-9);
}

}  // namespace
}  // namespace foretrace::nccl
