#include "models/nccl/rules/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "models/nccl/rules/rccl.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using enum Algorithm;
using enum Function;
using enum Protocol;

int floor_log2(std::uint64_t value) { return static_cast<int>(std::bit_width(value)) - 1; }

bool gathers(Function function) { return function == AllGather || function == ReduceScatter; }

/// Does NCCL know this algorithm for this function at all?
bool exists(Function function, Algorithm algorithm) {
  if (function == Broadcast || function == Reduce) return algorithm == Ring;
  if (gathers(function)) {
    return algorithm == Pat || algorithm == Ring || algorithm == Nvls || algorithm == CollNetDirect;
  }
  return algorithm != Pat;
}

/// Steps of one pass of a ring.
int ring_steps(Function function, int ranks) {
  if (function == AllReduce) return 2 * (ranks - 1);
  return gathers(function) ? ranks - 1 : ranks;
}

// The arithmetic below keeps NCCL's types: its tables and variables are float, its constants
// double.
class PriceTable {
 public:
  explicit PriceTable(Tuning& tuning)
      : tuning_{tuning},
        rules_{*tuning.constants},
        nodes_{static_cast<int>(tuning.topology.nodes)},
        ranks_{static_cast<int>(tuning.ranks())},
        per_node_{static_cast<float>(ranks_) / static_cast<float>(nodes_)},
        scale_{tuning.topology.nodes <= 2 ? tuning.topology.nodes - 1 : 2},
        generation_{index_of(tuning.topology.generation)} {}

  void fill() {
    for (std::size_t f = 0; f < kFunctions; ++f) {
      for (std::size_t a = 0; a < kAlgorithms; ++a) {
        for (std::size_t p = 0; p < kProtocols; ++p) {
          const auto function = static_cast<Function>(f);
          const auto algorithm = static_cast<Algorithm>(a);
          const auto protocol = static_cast<Protocol>(p);
          if (!exists(function, algorithm)) continue;
          tuning_.bandwidth[f][a][p] = bandwidth(function, algorithm, protocol);
          tuning_.latency[f][a][p] = latency(function, algorithm, protocol);
        }
      }
    }
  }

 private:
  float channel_bandwidth(Function function, Algorithm algorithm) const {
    const SearchGraph& graph = tuning_.graph(algorithm);
    if (!is_nvls(algorithm)) return nodes_ <= 2 ? graph.intra_gbps : graph.inter_gbps;
    return rules_.nvls_by_ring_ratio ? nvls_bandwidth(function, algorithm, graph)
                                     : older_nvls_bandwidth(function, algorithm, graph);
  }

  float nvls_bandwidth(Function function, Algorithm algorithm, const SearchGraph& graph) const {
    if (graph.channels < 2) return 0;
    const auto channels = static_cast<float>(graph.channels);
    float intra =
        graph.intra_gbps * rules_.nvls_efficiency[generation_] * (channels - 1) / channels;
    intra *= function == AllReduce ? 2.0F : (per_node_ - 1) / per_node_;
    const bool tree = algorithm == NvlsTree;
    const float inter = graph.inter_gbps * (nodes_ <= 2 && tree ? 2.F : 1.F);
    const float most = tree ? static_cast<float>(rules_.nvls_tree_per_channel[generation_][scale_])
                            : std::numeric_limits<float>::max();
    return std::min({intra, inter, most});
  }

  /// Before 2.28.
  float older_nvls_bandwidth(Function function, Algorithm algorithm,
                             const SearchGraph& graph) const {
    if (rules_.old_nvls_tree) return nodes_ <= 2 ? graph.intra_gbps : graph.inter_gbps;
    if (algorithm == NvlsTree) {
      return std::min(graph.intra_gbps, nodes_ <= 2 ? graph.inter_gbps : graph.inter_gbps / 2);
    }
    const bool alike = function == AllReduce || !rules_.nvls_gathers_apart;
    if (alike) return std::min(graph.intra_gbps, graph.inter_gbps);
    return std::min(graph.intra_gbps * (per_node_ - 1.0F) / per_node_, graph.inter_gbps * 0.9F);
  }

  double ll_most() const {
    const std::size_t by_cpu = tuning_.topology.cpu == Cpu::Amd ? 1 : 0;
    return rules_.ll_max[nodes_ == 1 ? generation_ : by_cpu][scale_];
  }

  float bandwidth(Function function, Algorithm algorithm, Protocol protocol) const {
    // CollNet has no bandwidth without its plug-in.
    if (algorithm == CollNetDirect || algorithm == CollNetChain) return 0;
    if (is_nvls(algorithm) && protocol != Simple) return 0;
    if (algorithm == Pat && (protocol != Simple || !pat_enabled())) return 0;
    if (algorithm == Nvls && gathers(function)) {
      if (nodes_ > 1 || !rules_.has_nvls_gathers) return 0;  // over nodes it needs CollNet
    }
    const auto channels = static_cast<double>(tuning_.graph(algorithm).channels);
    float bus = static_cast<float>(channels) * channel_bandwidth(function, algorithm);
    const auto limit = [&bus](double value, double most) {
      bus = static_cast<float>(std::min(value, most));
    };
    if (algorithm == Ring && protocol == LL) limit(bus * ring_ll_share(function), ll_most());
    if (algorithm == Ring && protocol == LL128) {
      limit(bus * (per_node_ < 2 ? rules_.ring_ll128_alone : 0.92),
            channels * rules_.ring_ll128_per_channel[generation_][scale_]);
    }
    if (algorithm == Tree) {
      limit(bus * .92, channels * rules_.tree_per_channel[generation_][scale_]);
      if (protocol == LL) limit(bus * 1.0 / 3.8, ll_most());
      if (protocol == LL128) {
        limit(bus * (nodes_ == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
              channels * rules_.tree_ll128_per_channel[generation_][scale_]);
      }
      const bool plain = tuning_.graphs.tree.pattern == Pattern::Tree;
      if (plain) bus = static_cast<float>(bus * .85);
    }
    if (algorithm == Pat) bus = static_cast<float>(bus * rules_.pat_share);
    const bool as_it_is = algorithm != Ring && gathers(function) && rules_.gathers_at_bus_rate;
    return as_it_is ? bus : bus * to_algorithm(function, algorithm);
  }

  double ring_ll_share(Function function) const {
    const bool slow = nodes_ > 1 || function == AllReduce || function == Reduce;
    return slow ? rules_.ring_ll_share : rules_.ring_ll_share_else;
  }

  /// Algorithm bandwidth over bus bandwidth.
  float to_algorithm(Function function, Algorithm algorithm) const {
    if (algorithm == NvlsTree && rules_.old_nvls_tree) {
      return static_cast<float>(.70 * nodes_ / (2 * (nodes_ - 1)));
    }
    if (is_nvls(algorithm) && !rules_.nvls_by_ring_ratio) return static_cast<float>(5.0 / 6.0);
    if (algorithm == Ring || is_nvls(algorithm)) {
      return static_cast<float>((1.0 * ranks_) / ring_steps(function, ranks_));
    }
    return .5F;
  }

  bool pat_enabled() const {
    const std::int64_t set = tuning_.settings.get(Number::PatEnable, 2);
    if (tuning_.topology.capability < 60 || rules_.pat_share == 0) return false;
    return set == 2 ? nodes_ == ranks_ : set != 0;
  }

  /// What posting to the network costs the host.
  float net_overhead() const {
    const std::int64_t set = tuning_.settings.get(Number::NetOverhead, -2);
    if (set != -2) return static_cast<float>(static_cast<double>(set) * .001);
    return tuning_.topology.cpu == Cpu::Amd ? 2.0F : 1.0F;
  }

  float hop(Hop kind, Algorithm algorithm, Protocol protocol) const {
    return static_cast<float>(
        rules_.hop_latency[index_of(kind)][index_of(algorithm)][index_of(protocol)]);
  }

  float latency(Function function, Algorithm algorithm, Protocol protocol) const {
    const SearchGraph& graph = tuning_.graph(algorithm);
    const auto base =
        static_cast<float>(rules_.base_latency[index_of(algorithm)][index_of(protocol)]);
    const Hop inside = graph.intra_path == Path::Nvl ? Hop::NvLink : Hop::Pci;
    const float intra = hop(inside, algorithm, protocol);
    // With one rank per node the network's latency shows in full.
    const bool alone = per_node_ == 1 && rules_.alone_has_tree_latency;
    float inter = hop(Hop::Net, alone ? Tree : algorithm, protocol);
    inter += graph.nic_latency_us;
    if (protocol == Simple) inter += graph.nic_latency_us;  // and the flush
    const auto depth = static_cast<float>(ranks_ / nodes_ - 1);
    const auto levels = static_cast<float>(floor_log2(static_cast<std::uint64_t>(nodes_)));
    switch (algorithm) {
      case Ring:
        return ring_latency(function, protocol, base, intra, inter);
      case Tree:
        return function == AllReduce ? base + 2 * (depth * intra + levels * inter) : base;
      case CollNetDirect:
        return base + static_cast<float>(2 * (std::min(1.F, depth) * intra + depth * 0.4) + inter);
      case CollNetChain:
        return base + 2 * depth * intra + inter;
      case Nvls:
        return nodes_ > 1 ? intra + inter : intra;
      case NvlsTree:
        if (rules_.old_nvls_tree) {
          return intra + static_cast<float>(2 * (nodes_ - 1)) * hop(Hop::Net, algorithm, protocol);
        }
        return base + (intra + 2 * levels * inter);
      case Pat:
        return gathers(function)
                   ? static_cast<float>(base + (levels * (inter / 3.5) + ranks_ * 2.8))
                   : base;
    }
    FORETRACE_CHECK(false, "an algorithm");
  }

  float ring_latency(Function function, Protocol protocol, float base, float intra,
                     float inter) const {
    const auto steps = static_cast<float>(ring_steps(function, ranks_));
    if (function == Broadcast || function == Reduce) {
      const SearchGraph& graph = tuning_.graphs.ring;
      Hop kind = graph.intra_path == Path::Nvl ? Hop::NvLink : Hop::Pci;
      if (nodes_ > 1) kind = Hop::Net;
      if (graph.same_channels) return base + hop(kind, Ring, protocol);
      return base + steps * hop(kind, protocol == Simple ? Tree : Ring, protocol);
    }
    float posting = 0;
    if (nodes_ > 1) posting = net_overhead() * (protocol == Simple ? 3.F : 1.F);
    const int once = rules_.crosses_once_more ? nodes_ : nodes_ - 1;
    const int between = function == AllReduce ? 2 * once : nodes_ - 1;
    const auto crossings = static_cast<float>(nodes_ == 1 ? 0 : between);
    return base + ((steps - crossings) * std::max(intra, posting) + crossings * inter);
  }

  Tuning& tuning_;
  const Constants& rules_;
  int nodes_;
  int ranks_;
  float per_node_;
  std::size_t scale_;
  std::size_t generation_;
};

/// ncclTopoGetAlgoTime: the table's entry, corrected for this size.
void set_price(Candidate& candidate, const Tuning& tuning, const Request& request) {
  const std::size_t f = index_of(request.function);
  const std::size_t a = index_of(candidate.algorithm);
  const std::size_t p = index_of(candidate.protocol);
  float bandwidth = tuning.bandwidth[f][a][p];
  float latency = tuning.latency[f][a][p];
  const Constants& rules = *tuning.constants;
  const bool tree = candidate.algorithm == Tree;
  const bool nvls_tree = candidate.algorithm == NvlsTree && rules.corrects_nvls_tree &&
                         tuning.topology.capability >= 100 && tuning.topology.cpu != Cpu::Arm;
  const int size = floor_log2(request.bytes.count >> 6);
  if (request.function == AllReduce && size >= 0 &&
      ((tree && (size < 23 || rules.is_rccl)) || (nvls_tree && size < 24))) {
    const auto column = std::min(static_cast<std::size_t>(size), kTreeCorrections - 1);
    bandwidth *= rules.tree_correction[p][column];
  }
  const std::uint64_t parts = std::uint64_t{tuning.channels} * tuning.ranks();
  if (candidate.algorithm == Ring && candidate.protocol == Simple && tuning.topology.nodes > 1 &&
      request.function == AllReduce && request.bytes.count / parts >= 64) {
    latency = static_cast<float>(latency * (tuning.topology.capability < 80 ? 1.9 : 1.4));
  }
  constexpr std::uint32_t kBatch = 10;  // collectives in one batch of a kernel's work
  const std::uint32_t times =
      candidate.algorithm == Ring ? request.pipelined : (request.pipelined + kBatch - 1) / kBatch;
  candidate.latency_us = latency * static_cast<float>(times);
  candidate.bandwidth_gbps = bandwidth;
  if (bandwidth == 0) return;
  candidate.price_us =
      candidate.latency_us + static_cast<float>(request.bytes.count) / (1000 * bandwidth);
}

/// src/include/device.h, ncclNvlsSupported.
bool nvls_reduces(const Request& request) {
  if (request.function == AllGather) return true;
  const bool sum = request.op == RedOp::Sum;
  switch (request.type) {
    case DataType::Int32:
    case DataType::Int64:
    case DataType::Float16:
    case DataType::BFloat16:
      return sum || request.op == RedOp::Min || request.op == RedOp::Max;
    case DataType::Float32:
    case DataType::Float64:
      return sum;
    case DataType::Int8:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      break;
  }
  return false;
}

/// LL128 is only safe over some paths.
std::string ll128_unsafe(const Tuning& tuning, Algorithm algorithm) {
  const SearchGraph& graph = tuning.graph(algorithm);
  const std::uint32_t capability = tuning.topology.capability;
  const bool wide = capability >= 90 && tuning.settings.get(Number::Ll128OverC2c, 1) != 0;
  if (capability < 70) return "LL128 needs Volta or later";
  if (graph.inter_path > (wide ? Path::Pxn : Path::Pxb)) {
    return fmt::format("LL128 is not safe over {} to the NIC", name_of(graph.inter_path));
  }
  if (graph.intra_path > Path::Nvb) {
    return fmt::format("LL128 is not safe over {} between GPUs", name_of(graph.intra_path));
  }
  return {};
}

std::string why_out(const Tuning& tuning, const Request& request, const Candidate& candidate) {
  const Algorithm algorithm = candidate.algorithm;
  const Function function = request.function;
  const bool several = tuning.topology.nodes > 1;
  if (!exists(function, algorithm)) {
    return fmt::format("NCCL has no {} {}", name_of(algorithm), name_of(function));
  }
  if (tuning.constants->is_rccl) {
    const std::string out = rccl_why_out(algorithm, candidate.protocol);
    if (!out.empty()) return out;
  }
  if (algorithm == CollNetDirect || algorithm == CollNetChain) return "needs the CollNet plug-in";
  if (is_nvls(algorithm)) {
    if (candidate.protocol != Simple) return "NVLS has only Simple";
    if (algorithm == NvlsTree && !several) return "for several nodes";
    if (algorithm == Nvls && several) return "needs the CollNet plug-in";
    if (tuning.graphs.nvls.channels == 0) return "no NVLS here";
    if (!nvls_reduces(request)) return "NVLS cannot reduce this type so";
  }
  if (algorithm == Pat) {
    if (candidate.protocol != Simple) return "PAT has only Simple";
    if (function == ReduceScatter && request.op == RedOp::Avg) return "PAT cannot average";
  }
  if (tuning.settings.enabled(function, algorithm) == Enable::No) return "NCCL_ALGO";
  const Enable protocol = tuning.settings.enabled(function, candidate.protocol);
  if (protocol == Enable::No) return "NCCL_PROTO";
  if (protocol == Enable::Default) {
    const std::string unsafe = ll128_unsafe(tuning, algorithm);
    if (!unsafe.empty()) return unsafe;
  }
  if (candidate.bandwidth_gbps > 0) return {};
  return algorithm == Pat ? "PAT needs one GPU per node" : "no bandwidth in NCCL's table";
}

}  // namespace

void set_prices(Tuning& tuning) {
  if (tuning.ranks() > 1) PriceTable{tuning}.fill();
}

std::vector<Candidate> priced_candidates(const Tuning& tuning, const Request& request) {
  std::vector<Candidate> candidates;
  for (std::size_t a = 0; a < kAlgorithms; ++a) {
    for (std::size_t p = 0; p < kProtocols; ++p) {
      Candidate candidate;
      candidate.algorithm = static_cast<Algorithm>(a);
      candidate.protocol = static_cast<Protocol>(p);
      if (tuning.ranks() == 1) {
        if (candidate.algorithm != Ring || candidate.protocol != Simple) candidate.out = "one rank";
      } else {
        set_price(candidate, tuning, request);
        candidate.out = why_out(tuning, request, candidate);
      }
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

namespace {

/// Why the algorithms that the settings allow are out.
std::string why_none(const Tuning& tuning, const Request& request,
                     const std::vector<Candidate>& all) {
  std::string text;
  for (const Candidate& c : all) {
    const bool allowed = tuning.settings.enabled(request.function, c.algorithm) != Enable::No &&
                         tuning.settings.enabled(request.function, c.protocol) != Enable::No;
    if (!allowed || text.find(c.out) != std::string::npos) continue;
    text += fmt::format("{}{} {}: {}", text.empty() ? "\n  hint: " : "; ", name_of(c.algorithm),
                        name_of(c.protocol), c.out);
  }
  return text;
}

}  // namespace

Candidate cheapest(const Tuning& tuning, const Request& request) {
  const std::vector<Candidate> all = priced_candidates(tuning, request);
  const Candidate* best = nullptr;
  for (const Candidate& candidate : all) {
    if (!candidate.out.empty()) continue;
    if (best == nullptr || candidate.price_us < best->price_us) best = &candidate;
  }
  if (best == nullptr) {
    throw UsageError{
        fmt::format("NCCL_ALGO and NCCL_PROTO leave nothing to do {} with: NCCL would refuse it{}",
                    name_of(request.function), why_none(tuning, request, all))};
  }
  return *best;
}

}  // namespace foretrace::nccl
