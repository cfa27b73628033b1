// Chunk fidelity against flow fidelity: nine operations alone on one node, all ranks at once. Both
// take the same machine parameters; slices have to add up to what the formulas say in one go.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "models/nccl/time/cost.h"
#include "models/nccl/time/slices.h"
#include "sim/chunk/network.h"

namespace foretrace::sim {
namespace {

/// Operations one after the other in one engine, with the time of each.
class Runner final : Handler, ChunkNetwork::Owner {
 public:
  explicit Runner(std::uint32_t gpus) : network_{engine_, gpus}, gpus_(gpus) {
    for (std::uint32_t i = 0; i < gpus; ++i) gpus_[i] = i;
  }

  void add(ChunkProgram program) { programs_.push_back(std::move(program)); }

  /// Seconds until the last rank was over, of each program.
  std::vector<double> run() {
    engine_.queue().at(TimePoint{}, *this, 0);
    engine_.run();
    return times_;
  }

 private:
  void fire(std::uint64_t index) override {
    began_ = engine_.now();
    open_ = programs_[index].ranks;
    const auto id = network_.add(programs_[index], gpus_, *this);
    for (std::uint32_t rank = 0; rank < programs_[index].ranks; ++rank) network_.begin(id, rank);
  }
  void rank_over(std::uint32_t) override {
    if (--open_ > 0) return;
    times_.push_back(to_seconds(engine_.now() - began_));
    if (times_.size() < programs_.size()) engine_.queue().at(engine_.now(), *this, times_.size());
  }

  Engine engine_;
  ChunkNetwork network_;
  std::vector<std::uint32_t> gpus_;
  std::vector<ChunkProgram> programs_;
  std::vector<double> times_;
  TimePoint began_{};
  std::uint32_t open_ = 0;
};

enum class Operation : std::uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll,
  Gather,
  Scatter,
  SendRecv
};
constexpr std::array kNames{"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce",
                            "AllToAll",  "Gather",    "Scatter",       "SendRecv"};
constexpr std::array kKinds{CollectiveKind::AllReduce,     CollectiveKind::AllGather,
                            CollectiveKind::ReduceScatter, CollectiveKind::Broadcast,
                            CollectiveKind::Reduce,        CollectiveKind::AllToAll,
                            CollectiveKind::Gather,        CollectiveKind::Scatter};

/// Of the operation that moves `bytes` in all at each rank, as nccl-tests counts them.
Bytes size_of_call(Operation operation, std::uint64_t bytes, std::uint32_t ranks) {
  const bool whole = operation == Operation::AllReduce || operation == Operation::Broadcast ||
                     operation == Operation::Reduce || operation == Operation::SendRecv;
  return {whole ? bytes : bytes / ranks};
}

using Case = std::tuple<Operation, std::uint32_t, std::string>;
std::string case_name(const testing::TestParamInfo<Case>& tested) {
  const auto& [operation, ranks, protocol] = tested.param;
  return fmt::format("{}_{}_{}", kNames[static_cast<std::size_t>(operation)], ranks,
                     protocol.empty() ? "chosen" : protocol);
}

class ChunkFidelity : public testing::TestWithParam<Case> {};
using enum Operation;
INSTANTIATE_TEST_SUITE_P(All, ChunkFidelity,
                         testing::Combine(testing::Values(AllReduce, AllGather, ReduceScatter,
                                                          Broadcast, Reduce, AllToAll, Gather,
                                                          Scatter, SendRecv),
                                          testing::Values(2U, 4U, 8U),
                                          testing::Values("", "LL", "LL128", "Simple")),
                         case_name);

TEST_P(ChunkFidelity, IsWithinThreePercentOfFlowFidelityFromEightBytesToOneGibibyte) {
  const auto& [operation, ranks, protocol] = GetParam();
  const Machine machine = load_machine("h200-nvswitch-8");
  std::map<std::string, std::string> environment;
  if (!protocol.empty()) environment["NCCL_PROTO"] = protocol;
  const nccl::Tuning tuning = nccl::tuning_for(machine, ranks, 1, environment);
  Runner runner{ranks};
  std::vector<std::uint64_t> sizes;
  std::vector<double> flows;
  for (std::uint64_t bytes = 8; bytes <= 1ULL << 30; bytes *= 2) {
    for (const std::uint64_t odd : {std::uint64_t{0}, bytes / 8 * 3}) {  // no power of two, too
      const Bytes size = size_of_call(operation, bytes + odd, ranks);
      if (size.count < 4) continue;
      nccl::Cost cost;
      if (operation == Operation::SendRecv) {
        cost = nccl::send_recv_cost(machine, tuning, size, true);
        runner.add(pair_program(nccl::send_recv_slices(machine, tuning, size, true)));
      } else {
        const CollectiveKind kind = kKinds[static_cast<std::size_t>(operation)];
        cost = nccl::collective_cost(machine, tuning, {kind, size});
        runner.add(collective_program(nccl::collective_slices(machine, tuning, {kind, size}), kind,
                                      ranks, 1, ranks - 1));
      }
      sizes.push_back(bytes + odd);
      flows.push_back(to_seconds(cost.latency + cost.hops(ranks)) +
                      static_cast<double>(cost.wire_bytes.count) /
                          machine.rate(Param::NvlinkBandwidth));
    }
  }
  const std::vector<double> chunks = runner.run();
  ASSERT_EQ(chunks.size(), flows.size());
  double worst = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    EXPECT_NEAR(chunks[i] / flows[i], 1, 0.03)
        << sizes[i] << " B: chunk " << chunks[i] * 1e6 << " us, flow " << flows[i] * 1e6 << " us";
    worst = std::max(worst, std::abs(chunks[i] / flows[i] - 1));
  }
  RecordProperty("worst", fmt::format("{:.4f}", worst));
}

/// In two nodes, so that trees are two, where the machine file says what lies between them.
TEST(ChunkSizes, AreThoseOfTheProgramsThatAreNotMade) {
  const Machine machine = load_machine("h200-nvswitch-8");
  for (const std::uint32_t nodes : {1U, 2U}) {
    for (const char* algorithm : {"Ring", "Tree"}) {
      const std::uint32_t ranks = 4 * nodes;
      const nccl::Tuning tuning = nccl::tuning_for(
          machine, ranks, nodes, {{"NCCL_ALGO", std::string{"allreduce:"} + algorithm}});
      for (const CollectiveKind kind : kKinds) {
        for (const std::uint64_t bytes : {64ULL, 3ULL << 20, 1ULL << 30}) {
          const nccl::Slices slices =
              nccl::collective_slices(machine, tuning, {kind, Bytes{bytes}});
          const ChunkProgram made = collective_program(slices, kind, ranks, nodes, 1);
          const ChunkSize size = chunk_size(slices, kind, ranks, nodes);
          EXPECT_EQ(size.links, static_cast<double>(made.links.size())) << bytes;
          EXPECT_EQ(size.messages, static_cast<double>(made.messages())) << bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretrace::sim
