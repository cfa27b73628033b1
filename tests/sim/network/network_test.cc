// Operations over several nodes that share NICs, leaves and spines, at both fidelities.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

/// One NCCL operation of `comm` over nodes of two GPUs, in region `r`; at once the same one of
/// `other`, if there is one.
struct Case {
  std::string network;
  std::string op = "nccl_all_reduce";
  std::string sizes = "buffer: x, size: 64MiB, type: float32, op: sum";
  std::string other;
  std::uint32_t nodes = 4;
  std::string members;  ///< of comm; default: all
};

Case ring(std::string network) {
  Case of;
  of.network = std::move(network);
  return of;
}

Case exchange(std::string network) {
  return {std::move(network),
          "nccl_all_to_all",
          "send_buffer: x, recv_buffer: y, size: 64MiB, type: float32",
          "",
          4,
          ""};
}

/// Microseconds of the region.
double simulated(const Case& of, Fidelity fidelity) {
  const std::string call = fmt::format("{{{}: {{comm: {{}}, stream: s, {}}}}}", of.op, of.sizes);
  const auto with = [&](const std::string& comm) {
    std::string text = call;
    return text.replace(text.find("{}"), 2, comm);
  };
  std::string threads = fmt::format(
      "  a:\n{}    ops: [host_barrier: {{}}, region: {{name: r, ops: [{}, stream_synchronize: "
      "{{stream: s}}]}}]\n",
      of.members.empty() ? "" : "    processes: [0, 2]\n", with("comm"));
  if (!of.other.empty()) {
    threads += fmt::format("  b:\n    processes: [1, 3]\n    ops: [host_barrier: {{}}, {}]\n",
                           with("other"));
  }
  const std::string text = fmt::format(
      "schema_version: 1\nname: t\nnodes: {}\nprocesses: {}\n{}\nstreams: {{s: {{flags: "
      "non_blocking}}}}\nbuffers: {{x: {{memory: device, size: 512MiB}}, y: {{memory: device, "
      "size: "
      "512MiB}}}}\ncommunicators: {{comm: {{members: {}}}{}}}\nthreads:\n{}",
      of.nodes, of.members.empty() ? 2 * of.nodes : of.nodes, of.network,
      of.members.empty() ? "all_devices" : of.members, of.other, threads);
  const auto read = read_scenario(text, "t.yaml");
  if (!read) {
    ADD_FAILURE() << render(read.error(), text);
    return 0;
  }
  const Timeline timeline = simulate(read->program, load_machine("h200-nvswitch-8"), fidelity);
  return static_cast<double>(timeline.regions.at(0).samples_ns.at(0)) / 1000;
}

class Network : public ::testing::TestWithParam<Fidelity> {
 protected:
  /// In a process of its own each: SimGrid's clock is process-wide.
  static double us(const Case& of) {
    return run_in_children({[&of] { return std::vector{simulated(of, GetParam())}; }})[0][0];
  }
};

TEST_P(Network, ThatNobodyElseUsesCostsWhatItCostsWithoutAFabric) {
  for (const Case& of : {ring(""), exchange("")}) {
    Case with = of;
    with.network = "fabric: none";
    EXPECT_NEAR(us(with), us(of), 0.002 * us(of)) << of.op;
  }
}

TEST_P(Network, IsSharedByCommunicatorsAtOnce) {
  Case pair =
      exchange("fabric: {kind: rail_optimized, leaf: {ports: 2}, spine: {oversubscription: 4}}");
  pair.members = "[[0, 0], [2, 0]]";
  const double alone = us(pair);
  pair.other = ", other: {members: [[1, 0], [3, 0]]}";
  EXPECT_NEAR(us(pair) / alone, 2, 0.1);
}

TEST_P(Network, WithASlowNicSlowsTheRingThatUsesIt) {
  const double sound = us(ring("fabric: none"));
  EXPECT_GT(us(ring("fabric: none\nfaults: [{node: 1, nic: 0, bandwidth: 25%}]")) / sound, 3);
  EXPECT_NEAR(us(ring("fabric: none\nfaults: [{node: 1, nic: 7, bandwidth: 25%}]")), sound,
              0.01 * sound)
      << "no GPU of the operation is next to NIC 7";
  EXPECT_NEAR(us(ring("fabric: none\nfaults: [{nic: 1, lost: true}]")) / sound, 2, 0.15);
}

TEST_P(Network, WithHalfOfALeafsLinksSlowsWhatCrossesIt) {
  const std::string pods = "fabric: {kind: rail_optimized, leaf: {ports: 2}}\n";
  const double sound = us(exchange(pods));
  EXPECT_GT(us(exchange(pods + "faults: [{leaf: 0, bandwidth: 25%}]")) / sound, 2);
  EXPECT_LT(us(ring(pods + "faults: [{leaf: 7, bandwidth: 25%}]")) / us(ring(pods)), 1.02)
      << "rail 7 is nobody's";
}

TEST_P(Network, VisitsNodesInTurnWhateverTheRanksAre) {
  const double blocks = us(ring("fabric: none"));
  EXPECT_NEAR(us(ring("fabric: none\nplacement: round_robin")), blocks, 0.01 * blocks);
}

TEST_P(Network, EndsAnOperationOfNothing) {
  Case nothing = ring("fabric: none");
  nothing.sizes = "buffer: x, size: 0B, type: float32, op: sum";
  EXPECT_LT(us(nothing), us(ring("fabric: none")));
}

INSTANTIATE_TEST_SUITE_P(Both, Network, ::testing::Values(Fidelity::Flow, Fidelity::Chunk),
                         [](const auto& fidelity) {
                           return fidelity.param == Fidelity::Flow ? "Flow" : "Chunk";
                         });

double straggler_us(const std::string& faults) {
  const std::string text =
      "schema_version: 1\nname: t\nprocesses: 1\n" + faults +
      "streams: {s: {flags: non_blocking}}\nthreads: {main: [region: {name: r, ops: [repeat: "
      "{times: "
      "50, ops: [spin: {stream: s, duration: 1ms}]}, stream_synchronize: {stream: s}]}]}\n";
  const auto read = read_scenario(text, "t.yaml");
  if (!read) return 0;
  return static_cast<double>(simulate(read->program, load_machine("h200-nvswitch-8"))
                                 .regions.at(0)
                                 .samples_ns.at(0)) /
         1000;
}

TEST(SlowGpu, TakesLongerForEveryKernel) {
  EXPECT_NEAR(straggler_us("faults: [{node: 0, gpu: 0, speed: 80%}]\n"), 50 / 0.8 * 1000, 300);
}

TEST(JitteringGpu, TakesLongerByHalfOfItOnAverage) {
  EXPECT_NEAR(straggler_us("faults: [{gpu: all, jitter: 20%}]\n"), 55000, 1000);
}

}  // namespace
}  // namespace foretrace
