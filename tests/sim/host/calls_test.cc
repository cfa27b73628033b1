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

/// 1 MB at 1000 bytes per us; then copies of it hold the host, as those of pageable memory do.
TEST(Calls, UnregisteringWaitsForTheDeviceAndMakesMemoryPageable) {
  Machine machine = unit_machine();
  machine.set(Param::HostUnregisterBase, {5e-6, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers: {host: {memory: pageable, size: 1MB}, x: {memory: device, size: 1MB}}
threads:
  main:
    - host_register: {buffer: host}
    - memcpy_async: {id: pinned, stream: s, src: host, dst: x}
    - device_synchronize: {}
    - host_unregister: {id: alone, buffer: host}
    - memcpy_async: {id: pageable, stream: s, src: host, dst: x}
    - host_register: {buffer: host}
    - spin: {id: kernel, stream: s, duration: 50ms}
    - host_unregister: {id: behind, buffer: host}
)",
                             machine);
  EXPECT_EQ(host_us(t, "alone"), 1005);
  EXPECT_LT(host_us(t, "pinned"), 10);
  EXPECT_GT(host_us(t, "pageable"), 100);
  const Span kernel = device_spans(t, "kernel").at(0), call = host_spans(t, "behind").at(0);
  EXPECT_GE(us(call.end_ns - kernel.end_ns), 1005);
}

}  // namespace
}  // namespace foretrace::test
