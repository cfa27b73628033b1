#include "models/nccl_tuning.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrace {
namespace {

constexpr std::size_t kProtocols = 3;
using PerProtocol = std::array<double, kProtocols>;  // LL, LL128, Simple

// nccl src/graph/tuning.cc, 2.28: baseLat and hwLat rows for NVLink, us.
constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4};
constexpr PerProtocol kRingBase{6.6, 14.0, 8.4};
constexpr PerProtocol kTreeHop{0.6, 1.25, 4.0};
constexpr PerProtocol kRingHop{0.6, 1.9, 3.4};
// The same file, Hopper rows for one node, GB/s.
constexpr double kLlMax = 141.0;
constexpr double kRingLl128PerChannel = 36.7;
constexpr double kTreeLl128PerChannel = 36.7;
constexpr double kTreePerChannel = 38.7;

// The same file, treeCorrectionFactor: index log2(bytes / 64).
constexpr std::size_t kCorrections = 23;
constexpr std::array<std::array<double, kCorrections>, kProtocols> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

/// Steps of a ring pass: nccl src/graph/tuning.cc, nsteps.
double ring_steps(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return 2 * (ranks - 1);
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
      return ranks - 1;
    default:
      return ranks;
  }
}

double ring_latency(CollectiveKind kind, NcclProtocol protocol, double ranks) {
  const double base = kRingBase[index(protocol)];
  const double hop = kRingHop[index(protocol)];
  // Every channel of an NVSwitch node has the same order: one hop for the whole chain.
  const bool chain = kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
  return chain ? base + hop : base + ring_steps(kind, ranks) * hop;
}

NcclPrice ring_price(const NcclGraph& graph, CollectiveKind kind, NcclProtocol protocol,
                     double bytes) {
  const double channels = graph.search_channels;
  const double total = channels * graph.channel_gbps;
  const PerProtocol bus{std::min(kLlMax, total / 2),
                        std::min(0.92 * total, channels * kRingLl128PerChannel), total};
  const double ranks = graph.ranks;
  const double bandwidth = bus[index(protocol)] * ranks / ring_steps(kind, ranks);
  const double latency = ring_latency(kind, protocol, ranks);
  return {NcclAlgorithm::Ring, protocol, latency, bandwidth, latency + bytes / (1000 * bandwidth)};
}

NcclPrice tree_price(const NcclGraph& graph, NcclProtocol protocol, double bytes) {
  const double channels = graph.search_channels;
  const double total = std::min(0.92 * channels * graph.channel_gbps, channels * kTreePerChannel);
  const PerProtocol bus{std::min(total / 3.8, kLlMax),
                        std::min(total * 7.0 / 9.0, channels * kTreeLl128PerChannel), total};
  const double hop = kTreeHop[index(protocol)];
  const double latency = kTreeBase[index(protocol)] + 2 * (graph.ranks - 1) * hop;
  double bandwidth = bus[index(protocol)] / 2;
  const double log_size = std::log2(bytes / 64);
  if (log_size >= 0 && log_size < kCorrections) {
    bandwidth *= kTreeCorrection[index(protocol)][static_cast<std::size_t>(log_size)];
  }
  return {NcclAlgorithm::Tree, protocol, latency, bandwidth, latency + bytes / (1000 * bandwidth)};
}

/// nccl src/enqueue.cc: first fewer channels, then fewer threads, while each thread would have
/// less than its threshold of bytes.
void shrink(NcclChoice& choice, const NcclGraph& graph, double bytes) {
  constexpr std::array<double, kProtocols> kThreshold{8, 8, 64};
  constexpr std::array<std::uint32_t, kProtocols> kThreads{512, 640, 512};
  double threshold = kThreshold[index(choice.protocol)];
  const bool ring = choice.algorithm == NcclAlgorithm::Ring;
  if (ring && choice.protocol == NcclProtocol::LL) threshold *= graph.ranks;
  choice.channels = 2 * graph.search_channels;
  choice.threads = kThreads[index(choice.protocol)];
  const auto too_many = [&] { return bytes < choice.channels * choice.threads * threshold; };
  while (too_many() && choice.channels > 1) --choice.channels;
  while (too_many() && choice.threads % 128 == 0) choice.threads /= 2;
  if (choice.protocol == NcclProtocol::Simple) choice.threads += ring ? 32 : 640 - choice.threads;
  choice.threads = std::max(choice.threads, 96u);
}

}  // namespace

std::string_view name_of(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::Tree ? "Tree" : "Ring";
}

std::string_view name_of(NcclProtocol protocol) {
  constexpr std::array<std::string_view, kProtocols> kNames{"LL", "LL128", "Simple"};
  return kNames[index(protocol)];
}

std::vector<NcclPrice> nccl_prices(const NcclGraph& graph, CollectiveKind kind, Bytes bytes) {
  using enum NcclProtocol;
  const auto count = static_cast<double>(bytes.count);
  std::vector<NcclPrice> prices;
  if (kind == CollectiveKind::AllReduce) {
    for (const NcclProtocol p : {LL, LL128, Simple}) prices.push_back(tree_price(graph, p, count));
  }
  for (const NcclProtocol p : {LL, LL128, Simple}) {
    prices.push_back(ring_price(graph, kind, p, count));
  }
  return prices;
}

NcclChoice nccl_choose(const NcclGraph& graph, CollectiveKind kind, Bytes bytes) {
  const std::vector<NcclPrice> prices = nccl_prices(graph, kind, bytes);
  const auto best = std::ranges::min_element(prices, {}, &NcclPrice::time_us);
  NcclChoice choice{best->algorithm, best->protocol, 1, 512};
  shrink(choice, graph, static_cast<double>(bytes.count));
  return choice;
}

NcclChoice nccl_choose_p2p(const NcclGraph& graph, Bytes bytes) {
  // nccl src/enqueue.cc, addP2pToPlan, all-NVLink node, 2.28: 32 channels per peer; LL up to
  // 16 KiB for each of them; parts of 1/8 to 32 steps.
  constexpr std::uint32_t kPerPeer = 32;
  const bool ll = bytes.count <= std::uint64_t{kPerPeer} * 16 * 1024;
  const std::uint64_t step = ll ? 64 * 1024 : 512 * 1024;
  std::uint32_t start = kPerPeer;
  while (start * graph.ranks > kPerPeer && start > 1) start /= 2;
  const std::uint64_t min_part = step / 8;
  const std::uint64_t max_part = step * 32;
  const std::uint64_t wanted = (bytes.count + min_part - 1) / min_part;
  auto channels = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1, start));
  while (bytes.count / channels > max_part && channels <= kPerPeer / 2) channels *= 2;
  return {NcclAlgorithm::Ring, ll ? NcclProtocol::LL : NcclProtocol::Simple, channels, 640};
}

}  // namespace foretrace
