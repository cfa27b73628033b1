#include "models/nccl/rules/rccl.h"

#include <fmt/format.h>

#include <array>

#include "models/nccl/rules/p2p.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using enum Algorithm;
using enum Function;
using enum Protocol;

constexpr Version kRcclVersion{2, 21, 5};
constexpr std::uint32_t kGpus = 8;
/// src/graph/topo.h: one xGMI link of gfx94x, GB/s; every GPU has one to each other.
constexpr float kXgmi = 48;
/// src/graph/rome_models.cc: the rings of eight GPUs that are all linked; src/graph/connect.cc,
/// ncclTopoPostset: twice as many channels.
constexpr std::uint32_t kRings = 28;
/// src/graph/tuning.cc: within a node LL carries so much more of a broadcast and a reduce.
constexpr double kOneWayLl = 1.65;

// clang-format off: rows and columns as in RCCL's tables

/// src/graph/tuning.cc, the tables of MI300X: rows Tree, Ring; LL, LL128, Simple.
constexpr Constants make_rccl() {
  Constants rules{};
  rules.since = kRcclVersion;
  rules.is_rccl = true;
  rules.base_latency[0] = {12, 12, 17};
  rules.base_latency[1] = {12, 12, 17};
  rules.hop_latency[index_of(Hop::NvLink)][0] = {0.9, 0, 2.3};
  rules.hop_latency[index_of(Hop::NvLink)][1] = {0.8, 0, 2.1};
  // 64 B, 128 B, ...
  rules.tree_correction[index_of(LL)] = {.1F, .1F, .1F, .1F, .1F, .1F, 1,   1,   1,
                                         1,   1,   .6F, 1,   .9F, 1,   1,   .1F, .1F,
                                         .1F, .1F, .1F, .1F, .1F, .1F, .1F, .1F, .1F};
  return rules;
}

// clang-format on

constexpr Constants kRcclRules = make_rccl();
/// Of the links' bandwidth, on up to two nodes. LL128 has none, nor Simple on trees of one node.
constexpr double kTreeLl = 0.06;
constexpr double kRingLl = 0.08;
constexpr double kRingSimple = 1.00;

float ring_bandwidth(Function function, double share) {
  double bus = kXgmi * (kGpus - 1) * share;
  if (share == kRingLl && (function == Broadcast || function == Reduce)) bus *= kOneWayLl;
  const double steps = function == AllReduce                                ? 2 * (kGpus - 1)
                       : function == AllGather || function == ReduceScatter ? kGpus - 1
                                                                            : kGpus;
  return static_cast<float>(bus * kGpus / steps);
}

float ring_latency(Function function, Protocol protocol) {
  const double base = kRcclRules.base_latency[index_of(Ring)][index_of(protocol)];
  const double hop =
      kRcclRules.hop_latency[index_of(Hop::NvLink)][index_of(Ring)][index_of(protocol)];
  if (function == Broadcast || function == Reduce) return static_cast<float>(base + hop);
  const double steps = function == AllReduce ? 2 * (kGpus - 1) : kGpus - 1;
  return static_cast<float>(base + steps * hop);
}

void set_rccl_prices(Tuning& tuning) {
  for (std::size_t f = 0; f < kFunctions; ++f) {
    const auto function = static_cast<Function>(f);
    auto& bandwidth = tuning.bandwidth[f][index_of(Ring)];
    auto& latency = tuning.latency[f][index_of(Ring)];
    bandwidth[index_of(LL)] = ring_bandwidth(function, kRingLl);
    bandwidth[index_of(Simple)] = ring_bandwidth(function, kRingSimple);
    latency[index_of(LL)] = ring_latency(function, LL);
    latency[index_of(Simple)] = ring_latency(function, Simple);
  }
  const std::size_t all = index_of(AllReduce);
  const std::size_t tree = index_of(Tree);
  tuning.bandwidth[all][tree][index_of(LL)] =
      static_cast<float>(kXgmi * (kGpus - 1) * kTreeLl * .5);
  tuning.latency[all][tree][index_of(LL)] =
      static_cast<float>(kRcclRules.base_latency[tree][index_of(LL)] +
                         2 * (kGpus - 1) * kRcclRules.hop_latency[index_of(Hop::NvLink)][tree][0]);
}

}  // namespace

std::optional<Version> parse_rccl_version(std::string_view text) {
  constexpr std::string_view kPrefix = "rccl-";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  if (text.substr(kPrefix.size()) == text_of(kRcclVersion)) return kRcclVersion;
  throw UsageError{fmt::format("the rules of {} are not known\n  hint: known is rccl-{}", text,
                               text_of(kRcclVersion))};
}

Tuning tune_rccl(const Topology& topology, Version version, const Settings& settings) {
  if (topology.nodes != 1 || topology.ranks() != kGpus || topology.link != Link::NvLinkMesh) {
    throw UsageError{fmt::format(
        "RCCL's choice is known for all {} GPUs of one MI300X node, not for {} ranks on "
        "{} node{}: with fewer it searches for rings\n  hint: --processes {}",
        kGpus, topology.ranks(), topology.nodes, topology.nodes == 1 ? "" : "s", kGpus)};
  }
  Tuning tuning;
  tuning.topology = topology;
  tuning.version = version;
  tuning.settings = settings;
  tuning.constants = &kRcclRules;
  tuning.graphs.ring = {.pattern = Pattern::Ring,
                        .channels = kRings,
                        .intra_gbps = kXgmi * (kGpus - 1) / kRings,
                        .intra_path = Path::Nvl};
  tuning.graphs.tree = tuning.graphs.ring;
  tuning.graphs.tree.pattern = Pattern::BalancedTree;
  tuning.graphs.gpu_path = Path::Nvl;
  tuning.graphs.gpu_gbps = kXgmi;
  tuning.all_nvlink = true;
  tuning.channels = 2 * kRings;
  tuning.buffer_bytes = {256 << 10, 0, 4 << 20};
  // src/include/device.h: at most 256 threads; src/include/comm.h: bytes that each should have.
  tuning.max_threads[index_of(Tree)] = tuning.max_threads[index_of(Ring)] = {256, 256, 256};
  tuning.bytes_per_thread[index_of(Tree)] = {8, 8, 64};
  tuning.bytes_per_thread[index_of(Ring)] = {8 * kGpus, 8, 64};
  set_rccl_prices(tuning);
  // NCCL's: RCCL is a copy of it, and its own rules of sends were not read.
  set_p2p_channels(tuning);
  tuning.p2p_chunk_bytes = tuning.buffer_bytes[index_of(Simple)] / kBufferSteps;
  return tuning;
}

std::string rccl_why_out(Algorithm algorithm, Protocol protocol) {
  if (algorithm != Tree && algorithm != Ring) return "RCCL has it for no MI300X";
  if (protocol == LL128) return "RCCL takes LL128 on MI200 only";
  if (algorithm == Tree && protocol == Simple) return "RCCL leaves it out within one MI300X node";
  return {};
}

std::string msccl_instead(const Request& request) {
  // tools/msccl-algorithms: all pairs at once, LL on 4 channels, then 8, then Simple on 8.
  constexpr std::uint64_t kFew = 65536;
  constexpr std::uint64_t kLl = 524287;
  constexpr std::uint64_t kMost = 16777216;
  if (request.function != AllReduce || request.bytes.count > kMost) return {};
  const std::uint64_t bytes = request.bytes.count;
  return fmt::format(
      "unless RCCL_MSCCL_ENABLE=0, MSCCL's schedule of all pairs takes over: {} on {} channels\n",
      name_of(bytes <= kLl ? LL : Simple), bytes <= kFew ? 4 : 8);
}

}  // namespace foretrace::nccl
