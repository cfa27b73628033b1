// No operation is faster than the same of a smaller size, by more than 3 %: every machine file,
// nine operations, ranks on 1 to 16 nodes, 1 KiB to 4 GiB. A sample of the layouts by default, all
// of them with FORETRACE_ALL_TESTS (./test.sh --all).
//
// Where NCCL itself is faster with a larger size, kFalls lists it, with how far it may fall and
// where that was seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/nccl/time/collective_time.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

constexpr double kTolerance = 1.03;

struct NamedOperation {
  std::string_view name;
  std::optional<CollectiveKind> kind;  ///< none: send/recv, both ways
  bool per_rank;                       ///< nccl-tests' size is that of all ranks together
};
constexpr std::array kOperations{
    NamedOperation{"all_reduce", CollectiveKind::AllReduce, false},
    NamedOperation{"all_gather", CollectiveKind::AllGather, true},
    NamedOperation{"reduce_scatter", CollectiveKind::ReduceScatter, true},
    NamedOperation{"broadcast", CollectiveKind::Broadcast, false},
    NamedOperation{"reduce", CollectiveKind::Reduce, false},
    NamedOperation{"all_to_all", CollectiveKind::AllToAll, true},
    NamedOperation{"gather", CollectiveKind::Gather, true},
    NamedOperation{"scatter", CollectiveKind::Scatter, true},
    NamedOperation{"send_recv", {}, false}};

/// A fall that NCCL has on hardware.
struct Fall {
  std::string_view machine;    ///< empty: all
  std::string_view operation;  ///< empty: all
  bool several_nodes;
  std::uint64_t to_bytes;  ///< of the faster size, at most
  double most;             ///< the slower time over the faster one
  std::string_view seen;   ///< where
};
constexpr std::string_view kUneven =
    "5 to 7 ranks: the channels that NCCL gives a size do not grow with it evenly (src/enqueue.cc)";
constexpr std::array kFalls{
    Fall{"gh200-slingshot-4", "all_reduce", true, 2 << 20, 7.2,
         "boeschf/nccl-benchmark-on-alps-2025, 2 nodes: 1 MiB by LL 921 us, 2 MiB 129 us"},
    Fall{"gh200-slingshot-4", "all_reduce", true, 128 << 20, 1.65,
         "the same, 16 nodes: 64 MiB 8713 us, 128 MiB 5495 us (128 and 256 KiB for each step)"},
    Fall{"a100-slingshot-4", "all_reduce", true, 4 << 20, 1.1,
         "argonne-lcf/alcf-nccl-tests, 2 nodes, NCCL 2.21.5: 2 MiB by LL 970 us, 4 MiB 907 us"},
    Fall{"a100-slingshot-4", "all_to_all", true, 64 << 10, 2.4,
         "argonne-lcf/alcf-nccl-tests, 8 nodes: 64 B for each peer 611 us, 256 B 290 us"},
    Fall{"h100-efa-8", "all_reduce", true, 1 << 20, 1.4,
         "awsome-distributed-training, 2 nodes: 64 KiB by LL 135 us, 128 KiB by LL128 109 us"},
    Fall{"a100-80gb-omnipath-8", "all_reduce", true, 1 << 20, 1.25,
         "NCCL's prices count on 6.25 GB/s where 2.5 are had; no table of small sizes is here"},
    Fall{"", "send_recv", false, 2 << 20, 1.35,
         "reports/measured/4_ranks/nccl_sendrecv: LL ends at 16 KiB of each of a peer's channels"},
    Fall{"b200-nvswitch-8", "all_to_all", false, 8 << 20, 1.15,
         "the same threshold; ai-dynamo/aiconfigurator, 8 GPUs"},
    Fall{"gh200-slingshot-4", "reduce", false, 1 << 20, 1.1,
         "boeschf/nccl-benchmark-on-alps-2025, one node: LL to 512 KiB, Simple from 1 MiB"},
    Fall{"b200-nvswitch-8", "all_gather", false, 16 << 20, 1.15,
         "ai-dynamo/aiconfigurator, 4 GPUs: LL128 to 8 MiB, Simple from 16 MiB on"},
    Fall{"", "broadcast", false, 1 << 18, 1.12, kUneven},
    Fall{"", "reduce", false, 1 << 18, 1.12, kUneven}};

double allowed(std::string_view machine, std::string_view operation, bool several_nodes,
               std::uint64_t bytes) {
  double most = kTolerance;
  for (const Fall& fall : kFalls) {
    const bool here = (fall.machine.empty() || fall.machine == machine) &&
                      fall.operation == operation && fall.several_nodes == several_nodes &&
                      bytes <= fall.to_bytes;
    if (here) most = std::max(most, fall.most);
  }
  return most;
}

std::vector<std::uint32_t> numbers(std::uint32_t most, std::initializer_list<std::uint32_t> some) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t n = 1; n <= most; ++n) {
#ifdef FORETRACE_ALL_TESTS
    all.push_back(n);
#else
    if (n == most || std::ranges::count(some, n) != 0) all.push_back(n);
#endif
  }
  return all;
}

/// Every fall of one operation on so many nodes, in words.
std::vector<std::string> falls(const Machine& machine, const Tuning& tuning,
                               const NamedOperation& operation) {
  const std::uint32_t ranks = tuning.ranks();
  const bool several = tuning.topology.nodes > 1;
  std::vector<std::string> found;
  double longest = 0;
  std::uint64_t longest_bytes = 0;
  for (std::uint64_t bytes = 1 << 10; bytes <= std::uint64_t{4} << 30; bytes *= 2) {
    const std::uint64_t each = operation.per_rank ? bytes / ranks / 4 * 4 : bytes;
    Reading read{machine};
    const Peer peer = several ? Peer::OtherNode : Peer::SameNode;
    const CollectiveTime time = operation.kind
                                    ? collective_time(read, tuning, {*operation.kind, {each}})
                                    : send_recv_time(read, tuning, {each}, true, peer);
    const double seconds = time.terms.seconds;
    const double factor = longest / seconds;
    if (factor > allowed(machine.name, operation.name, several, bytes)) {
      found.push_back(fmt::format("{}: {} on {} x {}: {} B {:.1f} us, {} B {:.1f} us", machine.name,
                                  operation.name, tuning.topology.nodes,
                                  tuning.topology.gpus_per_node, longest_bytes, longest * 1e6,
                                  bytes, seconds * 1e6));
    }
    const bool is_known_fall = factor > kTolerance;
    if (seconds > longest || is_known_fall) {
      std::tie(longest, longest_bytes) = std::pair{seconds, bytes};
    }
  }
  return found;
}

std::size_t check(const Machine& machine) {
  std::size_t lines = 0;
  for (const std::uint32_t nodes : numbers(16, {1, 2, 3, 8})) {
    for (const std::uint32_t gpus : numbers(machine.gpus_per_node, {1, 2, 6})) {
      if (nodes * gpus < 2) continue;
      // NCCL's rules stand in for RCCL's on less than a node, an H200's times for those of xGMI.
      if (machine.nccl_version.starts_with("rccl") && (nodes > 1 || gpus != 8)) continue;
      const Tuning tuning = tuning_for(machine, nodes * gpus, nodes, {});
      for (const NamedOperation& operation : kOperations) {
        for (const std::string& fall : falls(machine, tuning, operation)) ADD_FAILURE() << fall;
        ++lines;
      }
    }
  }
  return lines;
}

TEST(NcclTimes, DoNotFallWithSizeOnAnyMachine) {
  std::size_t machines = 0;
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    if (machine.gpu_name == "synthetic" || machine.gpus_per_node < 2) continue;
    const bool is_amd = machine.gpu_name.find("MI3") != std::string::npos;
    EXPECT_GE(check(machine), is_amd ? 5 : 4 * kOperations.size()) << name;
    ++machines;
  }
  EXPECT_GE(machines, 9u);
}

}  // namespace
}  // namespace foretrace::nccl
