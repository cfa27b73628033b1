// Registered buffers: who may use them, when the peers map them, what a call then waits for.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

/// Each rank gathers 64 MiB of its own, from and to memory of this kind.
std::string gathering(const std::string& memory, const std::string& ops) {
  return "\nprocesses: 2\nenvironment: {NCCL_PROTO: Simple, NCCL_ALGO: Ring}\n"
         "streams: {s: {flags: non_blocking}}\ngraphs: {g: {}}\n"
         "buffers: {a: {memory: " +
         memory + ", size: 64MiB}, b: {memory: " + memory +
         ", size: 128MiB}}\ncommunicators: {world: {members: all_devices, init: rank}}\n"
         "threads:\n  main:\n" +
         ops;
}

const std::string kGather =
    "nccl_all_gather: {id: ag, comm: world, stream: s, send_buffer: a, recv_buffer: b, type: "
    "float32}";
const std::string kGraph = "    - graph_capture: {graph: g, stream: s, ops: [" + kGather +
                           "]}\n    - graph_launch: {id: launch, graph: g, stream: s}\n";

/// An exchange of addresses takes 500 us, mapping a buffer 20 ms, and registering one 70 us.
Machine machine_with_registration() {
  Machine machine = load_machine("h200-nvswitch-8");
  for (const auto& [param, value] : {std::pair{Param::NcclDirectExchange, 500e-6},
                                     {Param::NcclRegisterPeer, 20e-3},
                                     {Param::NcclRegister, 70e-6}}) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  return machine;
}

TEST(RegisteredBuffers, AreThoseOfNcclInAGraph) {
  const Timeline t = predict(gathering("nccl", kGraph), machine_with_registration());
  EXPECT_GT(device_us(t, "launch"), 500);
  EXPECT_GT(host_us(t, "ag"), 20000) << "the peer maps the receive buffer";
}

TEST(RegisteredBuffers, AreNotThoseOfCudaMallocInAGraph) {
  const Timeline t = predict(gathering("device", kGraph), machine_with_registration());
  EXPECT_LT(device_us(t, "launch"), 500);
  EXPECT_LT(host_us(t, "ag"), 1000);
}

TEST(RegisteredBuffers, AreMappedAtTheFirstCallThatUsesThem) {
  const Timeline t = predict(
      gathering(
          "nccl",
          "    - nccl_comm_register: {id: register, comm: world, buffer: a}\n"
          "    - nccl_comm_register: {comm: world, buffer: b}\n    - repeat: {times: 2, ops: [" +
              kGather + "]}\n    - nccl_comm_deregister: {comm: world, buffer: b}\n    - " +
              kGather + "\n"),
      machine_with_registration());
  EXPECT_NEAR(host_us(t, "register"), 70, 5);
  const auto calls = host_spans(t, "ag");  // two ranks, three calls each
  ASSERT_EQ(calls.size(), 6u);
  std::vector<double> lasts;
  for (const Span& call : calls) lasts.push_back(us(call.end_ns - call.begin_ns));
  EXPECT_EQ(std::ranges::count_if(lasts, [](double call) { return call > 20000; }), 2);
  std::vector<double> on_gpu;
  for (const Span& span : device_spans(t, "ag")) on_gpu.push_back(us(span.end_ns - span.begin_ns));
  EXPECT_EQ(std::ranges::count_if(on_gpu, [](double time) { return time > 500; }), 4)
      << "after the deregistration it is a call as any other";
}

}  // namespace
}  // namespace foretrace::test
