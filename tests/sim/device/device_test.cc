// One GPU's SMs, priorities, copy engines and hardware queues. Times add up from
// tests/sim/unit_machine.h: 10 SMs, calls of 1 us, a launch reaches the GPU 1 us after its call.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kStreams = R"(
streams:
  a: {flags: non_blocking}
  b: {flags: non_blocking}
  urgent: {flags: non_blocking, priority: -1}
)";

Machine with(Param param, double value) {
  Machine machine = unit_machine();
  ParamValue changed = machine.get(param);
  changed.value = value;
  machine.set(param, changed);
  return machine;
}

TEST(Blocks, OfALastWaveLeaveSmsToTheNextKernel) {
  const Timeline t = predict(kStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us, blocks: 15}
    - spin: {id: l, stream: b, duration: 10us, blocks: 10}
)");
  EXPECT_EQ(us(device_spans(t, "k")[0].end_ns), 22);
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 12) << "five SMs are free in k's second wave";
  EXPECT_EQ(us(device_spans(t, "l")[0].end_ns), 32) << "its other five blocks begin at 22";
}

TEST(Blocks, OfASmallKernelWaitBehindAllOfALargeOne) {
  const Timeline t = predict(kStreams + R"(
threads:
  main:
    - spin: {id: large, stream: a, duration: 10us, blocks: 50}
    - spin: {id: small, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "small")[0].begin_ns), 52);
}

TEST(Priority, LetsAKernelBeginWithTheNextWave) {
  const Timeline t = predict(kStreams + R"(
threads:
  main:
    - spin: {id: large, stream: a, duration: 10us, blocks: 50}
    - spin: {id: small, stream: urgent, duration: 10us, blocks: 5}
)");
  EXPECT_EQ(us(device_spans(t, "small")[0].begin_ns), 12) << "blocks that run are not interrupted";
  // Its five SMs miss one wave: 35 blocks are left at 22, five of them for a last wave.
  EXPECT_EQ(us(device_spans(t, "large")[0].end_ns), 62);
}

TEST(CopyEngines, OneMovesOneDirectionAtATimeBesideKernels) {
  const std::string text = kStreams + R"(
buffers:
  in: {memory: pinned, size: 20000B}
  out: {memory: pinned, size: 20000B}
  x: {memory: device, size: 20000B}
  y: {memory: device, size: 20000B}
threads:
  main:
    - spin: {id: k, stream: urgent, duration: 10us}
    - memcpy_async: {id: up, stream: a, src: in, dst: x}
    - memcpy_async: {id: down, stream: b, src: y, dst: out}
)";
  const Timeline t = predict(text, with(Param::CopyEngines, 1));
  EXPECT_EQ(us(device_spans(t, "up")[0].begin_ns), 3) << "beside the kernel, which ends at 12";
  EXPECT_EQ(device_spans(t, "down")[0].begin_ns, device_spans(t, "up")[0].end_ns);
}

TEST(CopyEngines, NoneCopiesWhenNoKernelRuns) {
  const std::string text = kStreams + R"(
buffers:
  in: {memory: pinned, size: 20000B}
  x: {memory: device, size: 20000B}
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - memcpy_async: {id: up, stream: b, src: in, dst: x}
    - spin: {id: l, stream: a, duration: 10us}
)";
  const Timeline t = predict(text, with(Param::CopyEngines, 0));
  EXPECT_EQ(us(device_spans(t, "up")[0].begin_ns), 12);
  EXPECT_EQ(device_spans(t, "l")[0].begin_ns, device_spans(t, "up")[0].end_ns);
}

TEST(HardwareQueue, SharedByTwoStreamsHoldsOneUpForTheOther) {
  const std::string text = kStreams + R"(
threads:
  main:
    - spin: {id: a1, stream: a, duration: 10us}
    - spin: {id: a2, stream: a, duration: 10us}
    - spin: {id: b1, stream: b, duration: 10us}
)";
  const Timeline t = predict(text, with(Param::HardwareQueues, 1));
  EXPECT_EQ(us(device_spans(t, "a2")[0].begin_ns), 12);
  EXPECT_EQ(us(device_spans(t, "b1")[0].begin_ns), 12) << "behind a2, which waits for a1";
}

TEST(HardwareQueue, AsManyAsTheEnvironmentAsksForKeepStreamsApart) {
  const Timeline t = predict(kStreams + R"(
environment: {CUDA_DEVICE_MAX_CONNECTIONS: 3}
threads:
  main:
    - spin: {id: a1, stream: a, duration: 10us}
    - spin: {id: a2, stream: a, duration: 10us}
    - spin: {id: b1, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "b1")[0].begin_ns), 4);
}

TEST(LaunchBlocking, MakesEveryLaunchWaitForItsKernel) {
  const Timeline t = predict(kStreams + R"(
environment: {CUDA_LAUNCH_BLOCKING: 1}
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(host_spans(t, "k")[0].end_ns), 13);
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 15);
}

TEST(Clusters, CannotUseTheSmsBesideNcclsBlocks) {
  Machine machine;  // without models of products: by facts
  for (std::size_t i = 0; i < kParamCount; ++i) {
    const auto param = static_cast<Param>(i);
    const std::string_view key = info(param).key;
    if (key.starts_with("products.") || key.starts_with("tiles.")) continue;
    machine.set(param, unit_machine().get(param));
  }
  machine.name = unit_machine().name;
  machine.nodes = unit_machine().nodes;
  machine.gpus_per_node = unit_machine().gpus_per_node;
  machine.gpu_name = unit_machine().gpu_name;
  machine.node = unit_machine().node;
  machine.nccl_version = unit_machine().nccl_version;
  machine.set(Param::HbmBandwidth, {1e15, 0, ParameterClass::Assumed, "", ""});
  machine.set(Param::GemmHalfPairLoss, {1, 0, ParameterClass::Assumed, "", ""});
  // Whole waves of tiles at the arithmetic's peak, of which smaller ones lose a little: those of
  // 128 x 128 are the fastest.
  for (const auto& [param, value] :
       std::vector<std::pair<Param, double>>{{Param::GpuHalfFlops, 1e12},
                                             {Param::GpuClock, 1000},
                                             {Param::GpuPower, 100},
                                             {Param::L2Size, 1e9},
                                             {Param::TilesShare, 1},
                                             {Param::TilesPower, 0},
                                             {Param::TilesFree, 1e12},
                                             {Param::TilesMemory, 1},
                                             {Param::TilesCache, 1e6},
                                             {Param::TilesKept, 1},
                                             {Param::TilesEdge, 0.01},
                                             {Param::TilesSmooth, 0},
                                             {Param::TilesInFlight, 100},
                                             {Param::TilesNorm, 8},
                                             {Param::TilesStart, 0},
                                             {Param::TilesWave, 0},
                                             {Param::TilesSum, 1e-3}}) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  const Timeline t = predict(R"(
processes: 2
environment: {NCCL_MAX_CTAS: 2}
streams: {comm: {flags: non_blocking}, work: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1GB}, m: {memory: device, size: 64MB, count: 2}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - gemm: {id: alone, stream: work, m: 256 * 24, n: 128, k: 1024, type: float16, a: m(0), b: m(0), c: m(1)}
    - stream_synchronize: {stream: work}
    - nccl_broadcast: {comm: world, stream: comm, buffer: x, type: float32, root: 0}
    - host_compute: {duration: 10us}
    - gemm: {id: beside, stream: work, m: 256 * 24, n: 128, k: 1024, type: float16, a: m(0), b: m(0), c: m(1)}
)",
                             machine);
  EXPECT_NEAR(device_us(t, "beside") / device_us(t, "alone"), 8.0 / 5, 0.05)
      << "48 blocks of 128 x 128: five waves on 10 SMs, eight on the 6 that neither NCCL holds nor "
         "stand beside those";
}

}  // namespace
}  // namespace foretrace::test
