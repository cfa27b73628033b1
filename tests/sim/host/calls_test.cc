// What a call costs, by what it records.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

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
