// What passes between the entries of a stream, derived.
#include "models/cost/stream.h"

#include <gtest/gtest.h>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;
using enum Param;

const Machine& stream_machine() {
  static const Machine kMachine = machine_of({{KernelGap, 1e-6},
                                              {NcclGap, 10e-6},
                                              {CopyGap, 2e-6},
                                              {CopyAfterKernel, 3e-6},
                                              {EventGap, 0.5e-6},
                                              {EventLatency, 4e-6},
                                              {HostFuncReturn, 7e-6},
                                              {EventLatencyCopy, 5e-6},
                                              {EventLatencyPeer, 12e-6},
                                              {NcclEventLatency, 1e-6},
                                              {NcclEventLatencyKernel, 3e-6},
                                              {NcclEventLatencyAfter, 2e-6},
                                              {GraphGap, 0.25e-6},
                                              {LaunchLatency, 6e-6},
                                              {CopyLaunchLatency, 8e-6},
                                              {NcclLaunchLatency, 9e-6},
                                              {GraphLatency, 11e-6}});
  return kMachine;
}

Duration between(Before before, Entry next, bool event_between = false) {
  return answer(stream_machine(), gap,
                Neighbours{.before = before, .next = next, .event_between = event_between});
}

TEST(Gap, IsThatOfTheEngineThatRunsBoth) {
  EXPECT_EQ(between(Before::Nothing, Entry::Kernel), 0_us);
  EXPECT_EQ(between(Before::Kernel, Entry::Kernel), 1_us);
  EXPECT_EQ(between(Before::Copy, Entry::Copy), 2_us);
  EXPECT_EQ(between(Before::Kernel, Entry::Copy), 3_us);
  EXPECT_EQ(between(Before::Copy, Entry::Kernel), 3_us);
  EXPECT_EQ(between(Before::Kernel, Entry::Graph), 1_us) << "a graph begins as a kernel does";
}

TEST(Gap, OfTheLegacyStreamBehindOthersIsThatOfAnEventToo) {
  EXPECT_EQ(between(Before::OtherStreams, Entry::Kernel), 4500_ns) << "4 - 0.5, and 1 as always";
  EXPECT_EQ(between(Before::OtherStreams, Entry::Copy), 3_us);
  EXPECT_EQ(between(Before::OtherStreams, Entry::NoTime), 0_us);
}

TEST(Gap, BetweenTwoNcclKernelsIsLonger) {
  EXPECT_EQ(between(Before::Nccl, Entry::Nccl), 11_us);
  EXPECT_EQ(between(Before::Nccl, Entry::Kernel), 1_us);
  EXPECT_EQ(between(Before::Kernel, Entry::Nccl), 1_us);
  EXPECT_EQ(between(Before::Nccl, Entry::Copy), 3_us);
}

TEST(Gap, GrowsByARecordThatStandsBetween) {
  EXPECT_EQ(between(Before::Kernel, Entry::Kernel, true), 1_us + 500_ns);
  EXPECT_EQ(between(Before::Copy, Entry::Copy, true), 2_us + 500_ns);
  EXPECT_EQ(between(Before::Kernel, Entry::Copy, true), 3_us + 500_ns);
  EXPECT_EQ(between(Before::Kernel, Entry::Record, true), 0_us) << "a record waits for nothing";
}

TEST(Gap, HandsAnEventOnAsLateAsAKernelWouldBegin) {
  EXPECT_EQ(between(Before::Event, Entry::Record), between(Before::Event, Entry::Kernel));
  EXPECT_EQ(between(Before::Event, Entry::NoTime), 0_us);
}

TEST(Gap, BetweenCopiesOfTwoEnginesIsThatBetweenKernelAndCopy) {
  const Neighbours up_and_down{.before = Before::Copy, .next = Entry::Copy, .other_engine = true};
  EXPECT_EQ(answer(stream_machine(), gap, up_and_down), 3_us);
}

Duration between_copies_of(Bytes copied, bool other_engine, Before before = Before::Copy) {
  static const Machine kMachine = machine_of({{CopyGap, 2e-6},
                                              {CopyAfterKernel, 3e-6},
                                              {CopySwitch, 5e-6},
                                              {SmallCopySwitch, 1e-6},
                                              {SmallCopyLimit, 8192}});
  return answer(kMachine, gap,
                Neighbours{.before = before,
                           .next = Entry::Copy,
                           .other_engine = other_engine,
                           .upload = true,
                           .copied = copied});
}

TEST(Gap, BetweenCopiesOfTwoEnginesDependsOnTheirSize) {
  EXPECT_EQ(between_copies_of(8192_B, true), 1_us);
  EXPECT_EQ(between_copies_of(8193_B, true), 5_us);
  EXPECT_EQ(between_copies_of(8192_B, false), 2_us);
}

TEST(Gap, OfASmallUploadBehindAKernelIsThatOfOneEngine) {
  EXPECT_EQ(between_copies_of(8192_B, false, Before::Kernel), 2_us);
  EXPECT_EQ(between_copies_of(8193_B, false, Before::Kernel), 3_us);
}

TEST(Gap, BehindAnEventWithoutATimeStampIsShorterByTheRecord) {
  EXPECT_EQ(between(Before::PlainEvent, Entry::Kernel), 4_us - 500_ns);
}

TEST(Gap, BetweenNcclAndKernelsIsLongerByAnEvent) {
  const auto behind = [](Before waited_for, Entry next) {
    return answer(stream_machine(), gap,
                  Neighbours{.before = Before::Event, .next = next, .waited_for = waited_for});
  };
  EXPECT_EQ(behind(Before::Kernel, Entry::Kernel), 4_us);
  EXPECT_EQ(behind(Before::Kernel, Entry::Nccl), 4_us + 3_us);
  EXPECT_EQ(behind(Before::Nccl, Entry::Kernel), 4_us + 2_us);
  EXPECT_EQ(behind(Before::Nccl, Entry::Nccl), 4_us + 1_us);
  EXPECT_EQ(behind(Before::Event, Entry::Nccl), 4_us + 1_us) << "handed on: no kernel's";
}

TEST(Gap, BetweenNcclAndKernelsIsAsMuchLongerByAnEventWithoutATimeStamp) {
  const auto behind = [](Before waited_for, Entry next) {
    return answer(stream_machine(), gap,
                  Neighbours{.before = Before::PlainEvent, .next = next, .waited_for = waited_for});
  };
  EXPECT_EQ(behind(Before::Kernel, Entry::Nccl), 3500_ns + 3_us);
  EXPECT_EQ(behind(Before::Nccl, Entry::Kernel), 3500_ns + 2_us);
}

TEST(Gap, InAGraphIsLongerBesideACopy) {
  const auto in_graph = [](Before before, Entry next) {
    return answer(stream_machine(), gap,
                  Neighbours{.before = before, .next = next, .in_graph = true});
  };
  EXPECT_EQ(in_graph(Before::Kernel, Entry::Kernel), 250_ns);
  EXPECT_EQ(in_graph(Before::Copy, Entry::Kernel), 3_us);
  EXPECT_EQ(in_graph(Before::Copy, Entry::Copy), 250_ns) << "of one engine";
  EXPECT_EQ(in_graph(Before::Nothing, Entry::Kernel), 0_us);
}

TEST(Gap, AfterAnotherStreamsEventIsItsLatencyAlone) {
  EXPECT_EQ(between(Before::Event, Entry::Kernel, true), 4_us);
  EXPECT_EQ(between(Before::Event, Entry::Copy, true), 5_us);
  EXPECT_EQ(between(Before::EventAfterCopy, Entry::Kernel, true), 5_us);
  EXPECT_EQ(between(Before::EventAfterCopy, Entry::Copy), 5_us);
}

TEST(Gap, BehindAHostFunctionIsThatOfTheDriversThread) {
  EXPECT_EQ(between(Before::HostFunction, Entry::Kernel), 7_us);
  EXPECT_EQ(between(Before::HostFunction, Entry::NoTime), 7_us);
  EXPECT_EQ(between(Before::HostFunction, Entry::HostFunction), 0_us);
  EXPECT_EQ(between(Before::Kernel, Entry::HostFunction), 0_us);
}

TEST(LaunchLatency, IsThatOfWhatIsLaunched) {
  EXPECT_EQ(answer(stream_machine(), launch_latency, Entry::Kernel), 6_us);
  EXPECT_EQ(answer(stream_machine(), launch_latency, Entry::Copy), 8_us);
  EXPECT_EQ(answer(stream_machine(), launch_latency, Entry::Nccl), 9_us);
  EXPECT_EQ(answer(stream_machine(), launch_latency, Entry::Graph), 11_us);
  EXPECT_EQ(answer(stream_machine(), launch_latency, Entry::HostFunction), 0_us);
}

}  // namespace
}  // namespace foretrace::cost
