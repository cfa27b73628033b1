// --with: what each word changes, how values are written, and what is refused.
#include "models/what_if/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/time/collective_time.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

double value_with(const std::string& what_if, Param param) {
  return load_machine_with("h200-nvswitch-8", {what_if}).get(param).value;
}

TEST(WhatIf, MultipliesByAFactorHoweverItIsWritten) {
  for (const char* text : {"nvlink=0.5x", "nvlink=x0.5", "nvlink=*0.5", "nvlink=/2", "nvlink=50%",
                           "nvlink.bandwidth=0.5x", "nvlink=225 GB/s"}) {
    EXPECT_DOUBLE_EQ(value_with(text, Param::NvlinkBandwidth), 225e9) << text;
  }
}

TEST(WhatIf, SetsAParameterToAValueWithItsUnit) {
  EXPECT_DOUBLE_EQ(value_with("nccl.gap=2us", Param::NcclGap), 2e-6);
  EXPECT_DOUBLE_EQ(value_with("gpu.sm_count=66", Param::SmCount), 66);
}

TEST(WhatIf, MovesAllParametersOfAWordInProportion) {
  const Machine plain = load_machine("h200-nvswitch-8");
  const Machine half = load_machine_with("h200-nvswitch-8", {"hbm=2400 GB/s"});
  const double factor = 2400e9 / plain.rate(Param::HbmBandwidth);
  for (const Param param : {Param::HbmBandwidth, Param::FillBandwidth, Param::D2dBandwidth,
                            Param::LibraryOptimizerRate, Param::ProductsMemory}) {
    EXPECT_NEAR(half.get(param).value / plain.get(param).value, factor, 1e-9) << info(param).key;
  }
  for (const Param param : {Param::FillCached, Param::ProductsCache, Param::NvlinkBandwidth,
                            Param::LibraryAttentionForwardRate128}) {
    EXPECT_EQ(half.get(param).value, plain.get(param).value) << info(param).key;
  }
}

TEST(WhatIf, MakesTheCallsOfASlowerHostTakeLonger) {
  const Machine plain = load_machine("h200-nvswitch-8");
  const Machine slow = load_machine_with("h200-nvswitch-8", {"host=0.5x"});
  EXPECT_DOUBLE_EQ(slow.get(Param::HostLaunchKernel).value,
                   2 * plain.get(Param::HostLaunchKernel).value);
  EXPECT_DOUBLE_EQ(slow.get(Param::HostCopyBandwidth).value,
                   plain.get(Param::HostCopyBandwidth).value / 2);
}

TEST(WhatIf, MakesASlowerHostCopyPageableMemorySlower) {
  const Machine plain = load_machine("h200-nvswitch-8");
  const Machine slow = load_machine_with("h200-nvswitch-8", {"host=0.5x"});
  for (const Param rate : {Param::PageableH2dBandwidth, Param::PageableD2hFirstBandwidth,
                           Param::FreshD2hBandwidth, Param::SmallPageableBandwidth}) {
    EXPECT_DOUBLE_EQ(slow.get(rate).value, plain.get(rate).value / 2) << info(rate).key;
  }
  EXPECT_DOUBLE_EQ(slow.get(Param::PageableD2hBase).value,
                   2 * plain.get(Param::PageableD2hBase).value);
  for (const Param same : {Param::H2dBandwidth, Param::D2hLatency, Param::PageableD2hFirst}) {
    EXPECT_EQ(slow.get(same).value, plain.get(same).value)
        << info(same).key << ": the copy engine moves pinned memory";
  }
}

TEST(WhatIf, MakesAllArithmeticOfAGpuFasterWithItsPeaksAndNoCpu) {
  for (const char* name : {"h200-nvswitch-8", "b200-nvswitch-8", "v100-pcie-4", "mi300x-8"}) {
    const Machine plain = load_machine(name);
    const Machine fast = load_machine_with(name, {"gemm=2.27x"});
    for (std::size_t i = 0; i < kParamCount; ++i) {
      const auto param = static_cast<Param>(i);
      if (info(param).unit != ParamUnit::FlopRate || !plain.has(param)) continue;
      const double factor = param == Param::HostCoreFlops ? 1 : 2.27;
      EXPECT_NEAR(fast.get(param).value, factor * plain.get(param).value,
                  1e-9 * plain.get(param).value)
          << name << ' ' << info(param).key;
    }
    EXPECT_EQ(fast.has(Param::GpuHalfFlops), plain.has(Param::GpuHalfFlops));
  }
}

TEST(WhatIf, ChangesTheNicsOfTheNode) {
  // 400 Gb/s, as H200 nodes are sold with
  EXPECT_DOUBLE_EQ(*load_machine_with("h200-nvswitch-8", {"nic=0.5x"}).node.nic_bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(*load_machine_with("h100-efa-8", {"nic=25 GB/s"}).node.nic_bandwidth, 25e9);
}

TEST(WhatIf, IsToldByTheMachinesNameAndByEachParameter) {
  Machine machine = load_machine("h200-nvswitch-8");
  const auto changed = apply_what_ifs(machine, {"nvlink=0.5x", "nic=2x"});
  EXPECT_EQ(machine.name, "h200-nvswitch-8 with nvlink=0.5x, nic=2x");
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].key, "nvlink.bandwidth");
  EXPECT_EQ(changed[0].from, "450 GB/s");
  EXPECT_EQ(changed[0].to, "225 GB/s");
}

TEST(WhatIf, LeavesTheMachineAloneWhereNothingIsChanged) {
  Machine machine = load_machine("h200-nvswitch-8");
  EXPECT_TRUE(apply_what_ifs(machine, {}).empty());
  EXPECT_EQ(machine.name, "h200-nvswitch-8");
}

TEST(WhatIf, TakesTheFactorsThatItNamesAsItsBounds) {
  for (const std::string factor : {"1000000x", "0.000001x", "/1000000", "0.0001%"}) {
    Machine machine = load_machine("h200-nvswitch-8");
    try {
      EXPECT_FALSE(apply_what_ifs(machine, {"host=" + factor}).empty()) << factor;
    } catch (const UsageError& error) {  // what comes out may be too much for the parameter
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("a factor lies between"))) << factor;
    }
  }
}

struct Refused {
  const char* name;
  const char* what_if;
  const char* because;
  friend std::ostream& operator<<(std::ostream& out, const Refused& r) { return out << r.what_if; }
};
class RefusedWhatIf : public testing::TestWithParam<Refused> {};
INSTANTIATE_TEST_SUITE_P(
    All, RefusedWhatIf,
    testing::Values(Refused{"Word", "nvlnk=0.5x", "did you mean 'nvlink'?"},
                    Refused{"Key", "nvlink.bandwith=0.5x", "did you mean 'nvlink.bandwidth'?"},
                    Refused{"Nothing", "nvlink", "it is NAME=VALUE"},
                    Refused{"NoName", "=2x", "it is NAME=VALUE"},
                    Refused{"NoValue", "nvlink=", "--with nvlink="},
                    Refused{"NoUnit", "nvlink=0.5", "expected"},
                    Refused{"WrongUnit", "nvlink=3us", "expected"},
                    Refused{"Zero", "nvlink=0x", "a factor lies between"},
                    Refused{"ByZero", "nvlink=/0", "a factor lies between"},
                    Refused{"Negative", "nvlink=-1x", "a factor lies between"},
                    Refused{"TooLarge", "nvlink=1000001x", "a factor lies between"},
                    Refused{"TooMuch", "nvlink=1e10 GB/s", "nvlink.bandwidth lies between"}),
    [](const auto& refused) { return refused.param.name; });

TEST_P(RefusedWhatIf, NamesTheFlagAndTheCause) {
  Machine machine = load_machine("h200-nvswitch-8");
  try {
    apply_what_ifs(machine, {GetParam().what_if});
    FAIL() << "taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string{"--with "} + GetParam().what_if));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().because));
  }
}

/// 1 GiB and more over all GPUs of so many nodes, in seconds.
double seconds_of(CollectiveKind kind, const Machine& machine, std::uint32_t nodes) {
  const std::uint32_t ranks = nodes * machine.gpus_per_node;
  Reading read{machine};
  return nccl::collective_time(read, nccl::tuning_for(machine, ranks, nodes, {}),
                               {kind, {std::uint64_t{1} << 30}})
      .terms.seconds;
}

TEST(WhatIf, HalfTheNvlinkTakesALargeAllReduceTwiceAsLongOnEveryMachine) {
  for (const char* name :
       {"a100-nvswitch-8", "a100-slingshot-4", "b200-nvswitch-8", "gh200-slingshot-4", "h100-efa-8",
        "h100-nvswitch-8", "h200-nvswitch-8"}) {
    const double factor =
        seconds_of(CollectiveKind::AllReduce, load_machine_with(name, {"nvlink=0.5x"}), 1) /
        seconds_of(CollectiveKind::AllReduce, load_machine(name), 1);
    EXPECT_GT(factor, 1.8) << name;
    EXPECT_LT(factor, 2.2) << name;
  }
}

TEST(WhatIf, HalfTheNicsTakeALargeAllGatherOverNodesTwiceAsLong) {
  for (const char* name : {"a100-nvswitch-8", "a100-slingshot-4", "gh200-slingshot-4", "h100-efa-8",
                           "h100-nvswitch-8", "h200-nvswitch-8"}) {
    const double factor =
        seconds_of(CollectiveKind::AllGather, load_machine_with(name, {"nic=0.5x"}), 4) /
        seconds_of(CollectiveKind::AllGather, load_machine(name), 4);
    EXPECT_GT(factor, 1.8) << name;
    EXPECT_LT(factor, 2.2) << name;
  }
}

}  // namespace
}  // namespace foretrace
