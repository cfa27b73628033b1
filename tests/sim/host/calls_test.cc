// What a call costs that a thread has not made for long.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

/// A cold call takes 10 us more, a cold product 40.
Machine forgetful_machine() {
  Machine machine = unit_machine();
  machine.set(Param::HostColdCall, {10e-6, 0, ParameterClass::Assumed, "", ""});
  machine.set(Param::HostColdGemm, {40e-6, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

TEST(Calls, CostMoreBehindWorkOfTheHostAndOnlyOnce) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers:
  from: {memory: pageable, size: 64MiB}
  to:   {memory: pageable, size: 64MiB}
threads:
  main:
    - spin: {id: first, stream: s, duration: 1us}
    - host_compute: {duration: 25ms}
    - spin: {id: half, stream: s, duration: 1us}
    - spin: {id: again, stream: s, duration: 1us}
    - stream_synchronize: {stream: s}
    - memcpy: {src: from, dst: to}
    - spin: {id: all, stream: s, duration: 1us}
    - device_synchronize: {}
)",
                             forgetful_machine());
  EXPECT_NEAR(host_us(t, "first"), 1, 0.01) << "host.first_call is 0 here";
  EXPECT_NEAR(host_us(t, "half"), 6, 0.01);
  EXPECT_NEAR(host_us(t, "again"), 1, 0.01);
  EXPECT_NEAR(host_us(t, "all"), 11, 0.01) << "the copy has driven it out of the caches";
}

const std::string kRecords = R"(
streams: {s: {flags: non_blocking}}
events: {timed: {}, plain: {timing: false}}
threads:
  main:
    - event_record: {id: timed, stream: s, event: timed}
    - event_record: {id: plain, stream: s, event: plain}
    - device_synchronize: {}
)";

Machine machine_with_untimed_records() {
  Machine machine = unit_machine();
  machine.set(Param::HostEventRecordUntimed, {0.25e-6, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

TEST(Calls, AnEventWithoutTimingIsRecordedSooner) {
  const Timeline t = predict(kRecords, machine_with_untimed_records());
  EXPECT_NEAR(host_us(t, "plain"), 0.25, 0.001);
  EXPECT_GT(host_us(t, "timed"), 0.5);
}

}  // namespace
}  // namespace foretrace::test
