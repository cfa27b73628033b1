// nvlink.bandwidth acts on every time that depends on NVLink, on every shipped machine that has it.
#include <gtest/gtest.h>

#include "models/cost/copy.h"
#include "models/nccl/time/slices.h"
#include "models/nccl/topology/machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;

std::vector<std::string> machines_with_nvlink() {
  std::vector<std::string> names;
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    if (machine.gpus_per_node < 2 || !machine.has(Param::NvlinkBandwidth)) continue;
    if (tuning_of(machine, 2).stays_on_nvlink()) names.push_back(name);
  }
  return names;
}

class Nvlink : public testing::TestWithParam<std::string> {
 protected:
  Machine machine = load_machine(GetParam());
  Machine halved = [this] {
    Machine slower = machine;
    ParamValue value = machine.get(Param::NvlinkBandwidth);
    value.value /= 2;
    slower.set(Param::NvlinkBandwidth, value);
    return slower;
  }();

  static double seconds(const Machine& on, const Tuning& tuning, const Call& call) {
    Reading read{on};
    return collective_time(read, tuning, call).terms.seconds;
  }
};

TEST_P(Nvlink, HalvedSlowsEveryCollectiveOfOneNode) {
  using enum CollectiveKind;
  for (const char* algorithm : {"Ring", "Tree", "NVLS"}) {
    const Tuning tuning = tuning_for(
        machine, machine.gpus_per_node, 1,
        {{"NCCL_NVLS_ENABLE", "1"}, {"NCCL_ALGO", std::string{"Ring;allreduce:"} + algorithm}});
    for (const CollectiveKind kind :
         {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Gather, Scatter}) {
      const Call call{kind, 64_MiB};
      const double before = seconds(machine, tuning, call);
      EXPECT_GT(seconds(halved, tuning, call), 1.3 * before)
          << algorithm << ", kind " << static_cast<int>(kind);
    }
  }
}

TEST_P(Nvlink, HalvedSlowsSendsTheirSlicesAndCopies) {
  const Tuning tuning = tuning_for(machine, 2, 1, {});
  const auto send = [&](const Machine& on) {
    Reading read{on};
    return send_recv_time(read, tuning, 256_MiB, true).terms.seconds;
  };
  EXPECT_GT(send(halved), 1.3 * send(machine));
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

INSTANTIATE_TEST_SUITE_P(All, Nvlink, testing::ValuesIn(machines_with_nvlink()),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::erase(text, '-');
                           return text;
                         });

}  // namespace
}  // namespace foretrace::nccl
