// nvlink.bandwidth acts on every time that depends on NVLink, on every shipped machine that has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "models/cost/copy.h"
#include "models/nccl/time/slices.h"
#include "models/nccl/topology/machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;

constexpr std::array kWithNvlink{"a100-nvswitch-8",
                                 "a100-slingshot-4",
                                 "b200-nvswitch-8",
                                 "gh200-slingshot-4",
                                 "h100-efa-8",
                                 "h100-nvswitch-8",
                                 "h100-nvswitch-8-flash2",
                                 "a100-80gb-nvswitch-8",
                                 "a100-80gb-omnipath-8",
                                 "h200-nvswitch-8",
                                 "a100-nvswitch-8-triton",
                                 "a100-80gb-nvswitch-8-triton"};

TEST(NvlinkMachines, AreAllListedHere) {
  std::vector<std::string> found;
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    if (machine.gpus_per_node < 2 || machine.gpu_name == "synthetic") continue;
    if (machine.nccl_version.starts_with("rccl")) continue;  // xGMI: rccl_test.cc
    if (tuning_of(machine, 2).stays_on_nvlink()) found.push_back(name);
  }
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(kWithNvlink));
}

class Nvlink : public testing::TestWithParam<const char*> {
 protected:
  Machine machine = load_machine(GetParam());
  Machine halved = [this] {
    Machine slower = machine;
    ParamValue value = machine.get(Param::NvlinkBandwidth);
    value.value /= 2;
    slower.set(Param::NvlinkBandwidth, value);
    return slower;
  }();

  /// On all GPUs of one node.
  double ratio(const std::string& algorithm, const Call& call) const {
    const auto seconds = [&](const Machine& on) {
      const Tuning tuning =
          tuning_for(on, machine.gpus_per_node, 1,
                     {{"NCCL_NVLS_ENABLE", "1"}, {"NCCL_ALGO", "Ring;allreduce:" + algorithm}});
      Reading read{on};
      return collective_time(read, tuning, call).terms.seconds;
    };
    return seconds(halved) / seconds(machine);
  }
};

TEST_P(Nvlink, HalvedSlowsEveryCollectiveOfOneNode) {
  using enum CollectiveKind;
  for (const CollectiveKind kind :
       {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Gather, Scatter}) {
    EXPECT_GT(ratio("Ring", {kind, 256_MiB}), 1.3) << "kind " << static_cast<int>(kind);
  }
}

TEST_P(Nvlink, HalvedIsHalfOfTheLinksThatNcclSees) {
  const std::uint32_t gpus = machine.gpus_per_node;
  EXPECT_EQ(2 * topology_of(halved, gpus, 1).nvlinks, topology_of(machine, gpus, 1).nvlinks);
}

TEST_P(Nvlink, HalvedSlowsTreesAndNvls) {
  const Call call{CollectiveKind::AllReduce, 256_MiB};
  EXPECT_GT(ratio("Tree", call), 1.3);
  const Topology topology = topology_of(machine, machine.gpus_per_node, 1);
  const bool has_nvls = topology.link == Link::NvSwitch && topology.multicast;
  if (has_nvls) {
    EXPECT_GT(ratio("NVLS", call), 1.3);
  }
}

TEST_P(Nvlink, HalvedSlowsSendsTheirSlicesAndCopies) {
  const auto send = [&](const Machine& on) {
    Reading read{on};
    return send_recv_time(read, tuning_for(on, 2, 1, {}), 256_MiB, true).terms.seconds;
  };
  EXPECT_GT(send(halved), 1.1 * send(machine)) << "channels decide, as well";
  const Tuning tuning = tuning_for(machine, 2, 1, {});
  const auto slice = [&](const Machine& on) {
    return collective_slices(on, tuning, {CollectiveKind::AllReduce, 64_MiB}).full.port_seconds;
  };
  EXPECT_NEAR(slice(halved), 2 * slice(machine), 1e-12);
  const auto copy = [&](const Machine& on) {
    Reading read{on};
    return to_seconds(cost::copy_time(read, {.route = cost::Route::PeerDirect, .size = 64_MiB}));
  };
  EXPECT_GT(copy(halved), 1.9 * copy(machine));
}

INSTANTIATE_TEST_SUITE_P(All, Nvlink, testing::ValuesIn(kWithNvlink), [](const auto& name) {
  std::string text{name.param};
  std::erase(text, '-');
  return text;
});

}  // namespace
}  // namespace foretrace::nccl
