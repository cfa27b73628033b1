// What host threads pay, derived.
#include "models/cost/host.h"

#include <gtest/gtest.h>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;
using enum Param;

const Machine& host_machine() {
  static const Machine kMachine = machine_of({{HostLaunchKernel, 4e-6},
                                              {HostLaunchGemm, 8e-6},
                                              {HostFirstCall, 1e-6},
                                              {HostFirstGemm, 20e-6},
                                              {HostContention, 0.5},
                                              {HostBesideProcess, 0.12},
                                              {HostSetDevice, 0.25e-6},
                                              {HostCapture, 2e-6},
                                              {HostQuery, 3e-6}});
  return kMachine;
}

TEST(CallTime, IsThatOfItsKindAndMoreTheFirstTimeInAPass) {
  EXPECT_EQ(answer(host_machine(), call_time, Call{.param = HostLaunchKernel}), 4_us);
  EXPECT_EQ(answer(host_machine(), call_time, Call{.param = HostLaunchKernel, .is_first = true}),
            5_us);
  EXPECT_EQ(answer(host_machine(), call_time, Call{.param = HostLaunchGemm, .is_first = true}),
            28_us)
      << "cuBLAS has a heuristic of its own to fetch";
}

TEST(CallTime, OfAProductInPartsHasTheSumsLaunchToo) {
  const Call call{.param = HostLaunchGemm, .kernels = 2};
  EXPECT_EQ(answer(host_machine(), call_time, call), 12_us);
}

TEST(CallTime, OfAProductDependsOnItsKernel) {
  EXPECT_EQ(answer(host_machine(), call_time, Call{.param = HostLaunchGemm, .share = 0.75}), 6_us);
  const Call in_parts{.param = HostLaunchGemm, .kernels = 2, .share = 0.75};
  EXPECT_EQ(answer(host_machine(), call_time, in_parts), 10_us) << "the second launch is a launch";
}

TEST(MemsetTime, OfLittleMemoryLaunchesNoKernel) {
  const Machine machine = machine_of({{HostMemset, 3e-6}});
  const Call call{.param = HostMemset};
  EXPECT_EQ(answer(machine, memset_time, call, Bytes{4096}), 990_ns);
  EXPECT_EQ(answer(machine, memset_time, call, Bytes{4097}), 3_us);
}

TEST(MallocAsyncTime, GrowsWhenThePoolDoes) {
  const Machine machine = machine_of({{HostMallocAsync, 1e-6},
                                      {HostMallocBesideProcess, 0.5},
                                      {HostPoolGrow, 40e-6},
                                      {HostPoolGrowBandwidth, 1e12},
                                      {HostPoolTrim, 20e-6},
                                      {HostPoolTrimBandwidth, 0.5e12},
                                      {HostClearBandwidth, 0.25e12}});
  const Call call{.param = HostMallocAsync};
  EXPECT_EQ(answer(machine, malloc_async_time, call, Bytes{0}, 0U), 1_us);
  EXPECT_EQ(answer(machine, malloc_async_time, call, Bytes{10'000'000}, 0U), 51_us);
  EXPECT_EQ(answer(machine, malloc_async_time, call, Bytes{10'000'000}, 1U), 76_us)
      << "another process changes its mappings, too";
  EXPECT_EQ(answer(machine, pool_trim_time, Bytes{0}, 0U), 0_us);
  EXPECT_EQ(answer(machine, pool_trim_time, Bytes{10'000'000}, 0U), 40_us);
  EXPECT_EQ(answer(machine, pool_trim_time, Bytes{10'000'000}, 1U), 60_us);
  EXPECT_EQ(answer(machine, clear_time, Bytes{10'000'000}), 40_us);
}

TEST(SizedCallTime, OfPinnedMemoryHasALeast) {
  const Machine machine =
      machine_of({{HostAllocBase, 10e-6}, {HostAllocBandwidth, 1e9}, {HostAllocLeast, 500e-6}});
  const Call call{.param = HostAllocBase};
  EXPECT_EQ(answer(machine, sized_call_time, call, HostAllocBandwidth, Bytes{1000}), 500_us);
  EXPECT_EQ(answer(machine, sized_call_time, call, HostAllocBandwidth, Bytes{1'000'000}), 1010_us);
}

TEST(CallTime, GrowsByAShareOfItselfForEachOtherThreadThatCalls) {
  // (4 us + 1 us) for the call; two others: 2 x 5 us x 0.5 more.
  const Call call{.param = HostLaunchKernel, .is_first = true, .others = 2};
  EXPECT_EQ(answer(host_machine(), call_time, call), 10_us);
  EXPECT_EQ(
      answer(machine_of({{HostQuery, 3e-6}}), call_time, Call{.param = HostQuery, .others = 2}),
      3_us)
      << "a machine that says nothing of it";
}

TEST(CallTime, ThatQueuesWorkIsAnEighthLongerBesideOtherProcesses) {
  const Machine machine = host_machine();
  EXPECT_EQ(answer(machine, call_time, Call{.param = HostLaunchKernel, .processes = 1}), 4480_ns);
  EXPECT_EQ(answer(machine, call_time, Call{.param = HostLaunchKernel, .processes = 7}), 4480_ns);
  EXPECT_EQ(answer(machine, call_time, Call{.param = HostQuery, .processes = 1}), 3_us)
      << "it queues nothing";
}

TEST(CallTime, OfAQueryBesideLaterWorkIsLongerWhereTheMachineSaysSo) {
  const Call call{.param = HostQuery, .finds_later_work = true};
  EXPECT_EQ(answer(machine_of({{HostQuery, 3e-6}, {HostQueryLater, 2e-6}}), call_time, call), 5_us);
  EXPECT_EQ(answer(machine_of({{HostQuery, 3e-6}}), call_time, call), 3_us);
}

TEST(CallTime, OfAnotherDeviceHasASwitchThatNobodyHoldsUp) {
  const Call call{.param = HostLaunchKernel, .switches_device = true, .others = 1};
  EXPECT_EQ(answer(host_machine(), call_time, call), 6_us + 250_ns);
}

TEST(CallTime, InACaptureIsThatOfTakingANote) {
  const Call call{.param = HostLaunchKernel, .is_captured = true, .is_first = true, .others = 3};
  EXPECT_EQ(answer(host_machine(), call_time, call), 2_us);
  const Call product{.param = HostLaunchGemm, .is_captured = true, .is_first = true};
  EXPECT_EQ(answer(host_machine(), call_time, product), 6_us)
      << "cuBLAS takes 4 us of its 8 before it launches";
  EXPECT_EQ(answer(host_machine(), capture_time, std::size_t{3}), 6_us);
}

TEST(CallTime, OfNcclInACaptureIsThatOfAPlan) {
  const Machine machine =
      machine_of({{HostCapture, 2e-6}, {NcclHostCaptured, 30e-6}, {NcclHostGrouped, 0.5e-6}});
  EXPECT_EQ(answer(machine, nccl_capture_time, std::size_t{1}), 30_us);
  EXPECT_EQ(answer(machine, nccl_capture_time, std::size_t{3}), 31_us) << "a group";
  EXPECT_EQ(answer(machine, nccl_capture_time, std::size_t{0}), Duration{0}) << "an empty one";
  EXPECT_EQ(answer(host_machine(), nccl_capture_time, std::size_t{3}), 6_us)
      << "a machine that does not say";
}

TEST(CallTime, IsPythonsOnlyWhereTheProgramCalls) {
  Machine slow = host_machine();
  slow.replace_call(HostLaunchKernel, {10e-6, 0, ParameterClass::Fit, "", ""});
  EXPECT_EQ(answer(slow, call_time, Call{.param = HostLaunchKernel}), 10_us);
  EXPECT_EQ(answer(slow, call_time, Call{.param = HostLaunchKernel, .is_inner = true}), 4_us);
}

TEST(SizedCallTime, IsAFixedPartAndBytesOverARate) {
  // 10 us and 1 MB at 100 GB/s, which are 10 us more.
  const Machine allocates =
      machine_of({{HostMalloc, 10e-6}, {HostMallocPerByte, 100e9}, {HostMallocBesideProcess, 0.5}});
  EXPECT_EQ(answer(allocates, sized_call_time, Call{.param = HostMalloc}, HostMallocPerByte,
                   Bytes{1'000'000}),
            20_us);
  EXPECT_EQ(answer(allocates, sized_call_time, Call{.param = HostMalloc, .processes = 1},
                   HostMallocPerByte, Bytes{1'000'000}),
            25_us)
      << "half of the fixed part more: one process after the other";
}

TEST(WakeTime, DependsOnWhatWasWaitedFor) {
  const Machine wakes = machine_of(
      {{HostWake, 4e-6}, {HostWakeEvent, 3e-6}, {HostBarrier, 2e-6}, {HostSignal, 1e-6}});
  EXPECT_EQ(answer(wakes, wake_time, Wait::Device), 4_us);
  EXPECT_EQ(answer(wakes, wake_time, Wait::Event), 3_us);
  EXPECT_EQ(answer(wakes, wake_time, Wait::Barrier), 2_us);
  EXPECT_EQ(answer(wakes, wake_time, Wait::Signal), 1_us);
}

TEST(PollTime, IsTheIntervalUnlessTheQueryTakesLonger) {
  const Call query{.param = HostQuery};
  EXPECT_EQ(answer(host_machine(), poll_time, query, Duration{10_us}), 10_us);
  EXPECT_EQ(answer(host_machine(), poll_time, query, Duration{1_us}), 3_us);
}

TEST(FillTime, OfFreshPagesHasTheirFirstTouch) {
  // 1 MB at 1 GB/s, and at 4 GB/s for the pages.
  const Machine fills = machine_of({{HostFillBandwidth, 1e9}, {HostTouchBandwidth, 4e9}});
  EXPECT_EQ(answer(fills, fill_time, Bytes{1'000'000}, Bytes{}), 1000_us);
  EXPECT_EQ(answer(fills, fill_time, Bytes{1'000'000}, Bytes{1'000'000}), 1250_us);
}

TEST(PeerAccess, IsEnabledOnce) {
  const Machine peers = machine_of({{HostEnablePeer, 500e-6}, {HostSetDevice, 1e-6}});
  EXPECT_EQ(answer(peers, enable_peer_time, false, true), 500_us);
  EXPECT_EQ(answer(peers, enable_peer_time, true, true), 1_us);
  EXPECT_EQ(answer(peers, enable_peer_time, true, false), 0_us);
}

TEST(GraphTimes, HaveAFixedPartAndOneForEachNode) {
  const Machine graphs = machine_of({{HostGraphInstantiate, 30e-6},
                                     {HostGraphInstantiatePerNode, 2e-6},
                                     {HostGraphLaunch, 5e-6},
                                     {HostGraphLaunchPerNode, 0.5e-6}});
  EXPECT_EQ(answer(graphs, graph_instantiate_time, 10U), 50_us);
  EXPECT_EQ(answer(graphs, graph_launch_time, Call{.param = HostGraphLaunch}, 10U), 10_us);
}

TEST(HostFunctionDelay, GrowsWithHowLongTheDriverHasLookedInVain) {
  const Machine polls = machine_of({{HostFuncNext, 1e-6},
                                    {HostFuncLatency, 8e-6},
                                    {HostFuncPoll, 20e-6},
                                    {HostFuncBackoff, 0.25}});
  EXPECT_EQ(answer(polls, host_function_delay, true, Duration{400_us}), 1_us) << "right behind one";
  EXPECT_EQ(answer(polls, host_function_delay, false, Duration{0}), 8_us) << "an idle stream";
  EXPECT_EQ(answer(polls, host_function_delay, false, Duration{4_us}), 13_us)
      << "no later than it has looked: 8 us, 4 us, and a quarter of 4 us";
  // 8 us, 20 us, and a quarter of the 400 us that it waited.
  EXPECT_EQ(answer(polls, host_function_delay, false, Duration{400_us}), 128_us);
}

}  // namespace
}  // namespace foretrace::cost
