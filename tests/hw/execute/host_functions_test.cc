#include "hw/execute/host_functions.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr SignalId kGo{0};
constexpr SignalId kDone{1};

TEST(HostFunctions, AreBusyThenSignal) {
  Signals signals{2};
  HostFunctions functions{signals};
  HostFunctionCall& call = functions.next();
  call.execution = {7, 3};
  call.ordinal = 2;
  call.duration_ns = 2'000'000;
  call.signal = kDone;
  HostFunctions::run(&call);
  EXPECT_TRUE(signals.try_take(kDone));
  const auto activities = functions.activities();
  ASSERT_THAT(activities, SizeIs(1));
  EXPECT_EQ(activities[0].kind, DeviceActivity::Kind::HostFunction);
  EXPECT_EQ(activities[0].cause, (Execution{7, 3}));
  EXPECT_EQ(activities[0].ordinal, 2);
  EXPECT_GE(activities[0].end_ns - activities[0].begin_ns, 2'000'000);
}

TEST(HostFunctions, WaitForTheirSignalAndSaySo) {
  Signals signals{2};
  HostFunctions functions{signals};
  HostFunctionCall& call = functions.next();
  call.execution = {7, 0};
  call.wait = kGo;
  std::thread driver{[&] { HostFunctions::run(&call); }};
  while (functions.waiting().empty()) std::this_thread::yield();
  EXPECT_THAT(functions.waiting(), ElementsAre(Execution{7, 0}));
  EXPECT_THAT(functions.activities(), IsEmpty());
  signals.signal(kGo);
  driver.join();
  EXPECT_THAT(functions.waiting(), IsEmpty());
  EXPECT_THAT(functions.activities(), SizeIs(1));
}

TEST(HostFunctions, ReturnWithoutASignalWhenTheRunEnds) {
  Signals signals{2};
  HostFunctions functions{signals};
  HostFunctionCall& call = functions.next();
  call.wait = kGo;
  call.signal = kDone;
  std::thread driver{[&] { HostFunctions::run(&call); }};
  while (functions.waiting().empty()) std::this_thread::yield();
  signals.close();
  driver.join();
  EXPECT_FALSE(signals.try_take(kDone));
  EXPECT_THAT(functions.activities(), IsEmpty());
}

TEST(HostFunctions, StayWhereTheyAreAndAreUsedAgainInTheNextPass) {
  Signals signals{0};
  HostFunctions functions{signals};
  std::vector<HostFunctionCall*> first;
  for (int i = 0; i < 1000; ++i) first.push_back(&functions.next());
  HostFunctions::run(first[0]);
  functions.reset();
  for (HostFunctionCall* call : first) EXPECT_EQ(&functions.next(), call);
  EXPECT_THAT(functions.activities(), IsEmpty()) << "the first pass's";
}

}  // namespace
}  // namespace foretrace::hw
