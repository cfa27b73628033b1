// Copies between GPUs, and what one GPU knows of another one. 1000 bytes per us on every route.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

/// Copies between GPUs without peer access have half the bandwidth.
Machine machine_with_slow_staging() {
  Machine machine = unit_machine();
  machine.set(Param::P2pStagedBandwidth, {0.5e9, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

const std::string kTwoDevices = R"(
devices: 2
streams: {s: {each: device, flags: non_blocking}}
buffers: {x: {each: device, memory: device, size: 1MB}}
)";

TEST(PeerCopies, AreDirectOnlyWithPeerAccess) {
  const Timeline t = predict(kTwoDevices + R"(
threads:
  main:
    - memcpy_async: {id: staged, stream: s(0), src: x(0), dst: x(1), size: 10000B}
    - stream_synchronize: {stream: s(0)}
    - enable_peer_access: {device: 0, peer: 1}
    - memcpy_async: {id: direct, stream: s(0), src: x(0), dst: x(1), size: 10000B}
)",
                             machine_with_slow_staging());
  EXPECT_EQ(us(device_spans(t, "staged")[0].end_ns - device_spans(t, "staged")[0].begin_ns), 20);
  EXPECT_EQ(us(device_spans(t, "direct")[0].end_ns - device_spans(t, "direct")[0].begin_ns), 10);
}

TEST(PeerCopies, AreDirectBetweenGpusOfOneProcessThatNcclConnects) {
  const Timeline t = predict(kTwoDevices + R"(
communicators: {world: {members: all_devices}}
threads:
  main:
    - memcpy_async: {id: direct, stream: s(0), src: x(0), dst: x(1), size: 10000B}
)",
                             machine_with_slow_staging());
  EXPECT_EQ(us(device_spans(t, "direct")[0].end_ns - device_spans(t, "direct")[0].begin_ns), 10);
}

/// Another GPU knows 4 us later of what one has done.
Machine machine_with_far_gpus() {
  Machine machine = unit_machine();
  machine.set(Param::EventLatencyPeer, {4e-6, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

/// From the first copy's begin to the end of the fourth on device 0's stream, after peer access.
double four_copies(const std::string& copy) {
  const Timeline t = predict(kTwoDevices + R"(
threads:
  main:
    - enable_peer_access: {device: 0, peer: 1}
    - repeat: {times: 4, ops: [{memcpy_async: {id: c, stream: s(0), size: 10000B, )" +
                                 copy + "}}]}\n",
                             machine_with_far_gpus());
  return us(device_spans(t, "c")[3].end_ns - device_spans(t, "c")[0].begin_ns);
}

TEST(PeerCopies, FollowEachOtherOnTheGpuThatHasTheData) {
  EXPECT_EQ(four_copies("src: x(0), dst: x(1)"), 40);
}

TEST(PeerCopies, OfAnotherGpusDataAreHandedThereAndBack) {
  EXPECT_EQ(four_copies("src: x(1), dst: x(0)"), 40 + 3 * 4) << "2 us each way";
}

TEST(PeerCopies, WithoutAccessAreHandedToNobody) {
  const Timeline t = predict(kTwoDevices + R"(
threads:
  main:
    - repeat: {times: 2, ops: [{memcpy_async: {id: c, stream: s(0), size: 10000B, src: x(1), dst: x(0)}}]}
)",
                             machine_with_far_gpus());
  EXPECT_EQ(device_spans(t, "c")[1].begin_ns, device_spans(t, "c")[0].end_ns);
}

/// What the first of two `enable_peer_access` takes, in us.
double enabled(const std::string& program) {
  Machine machine = unit_machine();
  machine.set(Param::HostEnablePeer, {50e-6, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(program + R"(
threads:
  main: [repeat: {times: 2, ops: [{enable_peer_access: {id: on, device: 0, peer: 1}}]}]
)",
                             machine);
  return us(host_spans(t, "on")[0].end_ns - host_spans(t, "on")[0].begin_ns);
}

TEST(EnablePeerAccess, IsUndoneBehindAPass) { EXPECT_EQ(enabled("devices: 2\n"), 50); }

TEST(EnablePeerAccess, TakesItsTimeInAColdProcessThoughNcclWillEnableIt) {
  EXPECT_EQ(enabled("warmup: 0\ndevices: 2\ncommunicators: {world: {members: all_devices}}\n"), 50);
}

TEST(EnablePeerAccess, StaysWhereThereAreCommunicators) {
  EXPECT_LT(enabled("devices: 2\ncommunicators: {world: {members: all_devices}}\n"), 2);
}

/// How long behind a kernel of device 0 the next entry of `on` begins that waits for its event.
double behind_a_kernel(const std::string& on, const std::string& next) {
  const Timeline t = predict(kTwoDevices + R"(
events: {e: {timing: false}}
threads:
  main:
    - spin: {id: first, stream: s(0), duration: 100us}
    - event_record: {stream: s(0), event: e}
    - spin: {stream: )" + on + R"(, duration: 100us}
    - stream_wait_event: {stream: )" +
                                 on + R"(, event: e}
    - )" + next + "\n",
                             machine_with_far_gpus());
  return us(device_spans(t, "next")[0].begin_ns - device_spans(t, "first")[0].end_ns);
}

TEST(Events, OfAnotherGpuAreSeenLaterByKernels) {
  const double within = behind_a_kernel("s(0)", "spin: {id: next, stream: s(0), duration: 1us}");
  const double between = behind_a_kernel("s(1)", "spin: {id: next, stream: s(1), duration: 1us}");
  EXPECT_EQ(within, 100) << "behind the stream's own kernel";
  EXPECT_EQ(between, 4);
}

}  // namespace
}  // namespace foretrace::test
