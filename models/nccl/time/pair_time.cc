#include "models/nccl/time/pair_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/constants/constants.h"
#include "models/cost/kernel.h"
#include "models/nccl/time/buffer_steps.h"
#include "models/nccl/time/network.h"
#include "models/nccl/time/overlap.h"
#include "models/nccl/time/ring_time.h"

namespace foretrace::nccl {
namespace {

/// Simple, of channels that drift apart: beyond the ports. No part is so small that they do not.
double drifting_seconds(Reading& read, const PairParams& params, double port_seconds, double part) {
  const double steps = std::max(part, read.value(Param::NcclExchangeLeast)) / kSimpleStepBytes;
  const double power = read.value(Param::NcclExchangePower);
  return port_seconds + read.seconds(params.simple_drift) * std::pow(steps, power);
}

/// Simple, of channels with a rate of their own, beside the ports.
double rated_seconds(Reading& read, const PairParams& params, double port_seconds, double part) {
  const double channel = part / read.rate(params.simple_rate) +
                         std::min(part, kSimpleStepBytes) / read.rate(params.simple_last);
  return overlapped(read, channel, port_seconds);
}

/// What an exchange takes longer for what the level-2 cache does not hold. It goes round the steps
/// of its channels' buffers: from call to call other memory is written, until all steps and the
/// program's own two buffers were. Half of a block's threads send and half receive, too few to hide
/// that written memory makes room in the cache for both; a kernel that only sends or receives hides
/// it (ping-pongs of 4 to 6 MiB against exchanges, two H200s and two H100s).
double beyond_level2_seconds(Reading& read, double bytes, double first_steps) {
  if (!read.has(Param::L2Size) || !read.has(Param::FillBandwidth)) return 0;
  const double missing =
      cost::missing_bytes(read, {first_steps, kBufferSteps * first_steps + 2 * bytes});
  return 2 * missing / read.rate(Param::FillBandwidth);
}

/// Send/recv by Simple. A channel writes a step whole before its receiver copies it out of the
/// buffer (nccl src/device/sendrecv.h: one slice for each chunk), so nothing hides the first step's
/// way through the ports and the last one's copy. In between threads that send and threads that
/// receive share their SM.
void send_recv_terms(Reading& read, Exchange exchange, const PairParams& params, double bytes,
                     double part, Terms& terms) {
  const double first = std::min(part, kSimpleStepBytes);
  const double share = part > 0 ? first / part : 1;
  const double one_direction = read.rate(params.simple_last);
  const double copied = first / one_direction;
  if (exchange == Exchange::OneWay) {
    terms.channel_seconds = std::max(part / one_direction, terms.port_seconds);
    terms.steps = 1;
    terms.last_step_seconds = copied;
    return;
  }
  const double channel = (part - first) / read.rate(params.simple_rate);
  const double port = terms.port_seconds * (1 - share);
  double rest = 0;
  if (read.has(Param::NcclPairOverlap)) {
    const double steps = (part - first) / kSimpleStepBytes;
    const double exponent = read.value(Param::NcclPairOverlap) +
                            read.value(Param::NcclPairOverlapGrowth) * std::log2(1 + steps);
    rest = overlapped(channel, port, exponent);
  } else {
    rest = overlapped(read, channel, port);
  }
  terms.channel_seconds = std::max(copied, terms.port_seconds * share) + copied + rest +
                          beyond_level2_seconds(read, bytes, bytes * share);
}

/// Of one channel by LL. A kernel that only sends, or only receives, has all threads of its blocks
/// for that: it copies as much faster as by Simple.
double ll_rate(Reading& read, Exchange exchange, const PairParams& params) {
  const double both_ways = read.rate(params.ll_rate);
  if (exchange != Exchange::OneWay || !read.has(params.simple_last)) return both_ways;
  return both_ways * read.rate(params.simple_last) / read.rate(params.simple_rate);
}

/// On a board without switches a pair has the links between the two alone.
double pair_links_seconds(Reading& read, const Topology& topology, double bytes) {
  if (topology.link != Link::NvLinkMesh) return 0;
  const double pairs = std::max(topology.mesh_gpus, 2U) - 1;
  return bytes * pairs / read.rate(Param::NcclPortShare);
}

/// Gather and scatter: a root's buffer has the ranks' parts one behind the other, and those that
/// begin at no multiple of 16 bytes go element by element: the others' or, with two ranks and root
/// 1, the root's own alone, which its kernel copies beside them.
double rooted_seconds(Reading& read, Exchange exchange, double aligned_seconds, double bytes,
                      double peers, std::uint32_t root) {
  const bool gathers = exchange == Exchange::Gather;
  double seconds = aligned_seconds;
  for (std::uint32_t rank = 0; rank <= static_cast<std::uint32_t>(peers); ++rank) {
    if (is_aligned(rank * bytes)) continue;
    const double own =
        bytes / constant(gathers ? "nccl.unaligned.gather_own" : "nccl.unaligned.scatter_own");
    const double others =
        bytes * peers / constant(gathers ? "nccl.unaligned.gather" : "nccl.unaligned.scatter");
    const double either =
        rank == root ? std::max(own, aligned_seconds)
                     : overlapped(aligned_seconds, others, read.value(Param::NcclChannelOverlap));
    seconds = std::max(seconds, either);
  }
  return seconds;
}

std::optional<Terms> within_node(Reading& read, const Topology& topology, Exchange exchange,
                                 const Choice& choice, double bytes, double peers,
                                 std::uint32_t root) {
  const PairParams params = pair_params(exchange);
  if (!read.has(params.ll_base)) return std::nullopt;
  const double part = bytes / choice.channels;
  Terms terms;
  terms.wire_bytes = bytes * peers;
  terms.wire_seconds = terms.wire_bytes / read.rate(Param::NcclPortShare);
  terms.port_seconds =
      terms.wire_bytes / (read.rate(Param::NcclPortShare) * read.value(params.port_share));
  if (choice.protocol == Protocol::LL) {  // flags double the bytes
    terms.fixed_seconds = read.seconds(params.ll_base) +
                          read.seconds(Param::NcclChannelDoubling) * std::log2(choice.channels);
    terms.port_seconds *= 2;
    terms.channel_seconds =
        overlapped(read, part / ll_rate(read, exchange, params), terms.port_seconds);
  } else if (is_direct(read, choice)) {  // nobody copies: the ports alone
    const bool one_way = exchange != Exchange::SendRecv && exchange != Exchange::AllToAll;
    const double share = one_way ? 1 : read.value(Param::NcclSendRecvPort);
    terms.fixed_seconds =
        read.seconds(Param::NcclSendRecvSimpleBase) + read.seconds(Param::NcclDirectExchange);
    terms.port_seconds = terms.wire_seconds / share;
    terms.channel_seconds = terms.port_seconds;
  } else {
    terms.fixed_seconds = read.seconds(params.simple_base);
    const bool drifts = read.has(params.simple_drift) && read.seconds(params.simple_drift) > 0;
    if (drifts) {
      terms.channel_seconds = drifting_seconds(read, params, terms.port_seconds, part);
    } else if (exchange == Exchange::SendRecv || exchange == Exchange::OneWay) {
      send_recv_terms(read, exchange, params, bytes, part, terms);
    } else {
      terms.channel_seconds = rated_seconds(read, params, terms.port_seconds, part);
    }
  }
  if (choice.protocol == Protocol::Simple && !is_aligned(bytes)) {
    double& seconds = terms.channel_seconds;
    if (exchange == Exchange::AllToAll)
      seconds += constant("nccl.unaligned.all_to_all") * terms.wire_seconds;
    if (exchange == Exchange::Gather || exchange == Exchange::Scatter) {
      seconds = rooted_seconds(read, exchange, seconds, bytes, peers, root);
    }
  }
  const double with_flags = choice.protocol == Protocol::LL ? 2 * bytes : bytes;
  terms.channel_seconds =
      std::max(terms.channel_seconds, pair_links_seconds(read, topology, with_flags));
  terms.seconds = terms.fixed_seconds + terms.channel_seconds + terms.last_step_seconds;
  return terms;
}

/// Where some of the peers, or the only one (SendRecv, OneWay), are on other nodes.
Terms between_nodes(Reading& read, const Network& network, const Topology& topology,
                    Exchange exchange, double channels, double bytes) {
  const double per_node = topology.gpus_per_node;
  const double elsewhere = topology.ranks() - per_node;
  const bool pair = exchange == Exchange::SendRecv || exchange == Exchange::OneWay;
  const double of_gpu = std::max(1.0, topology.nics / per_node) * network.exchange_rate();
  Terms terms;
  double seconds = 0;
  if (exchange == Exchange::AllToAll) {
    seconds = per_node * elsewhere * bytes / (topology.nics * network.exchange_rate());
  } else {  // gather and scatter: all through the root's NIC
    const double rate = pair ? std::min(of_gpu, channels * constant("nccl.net_channel")) : of_gpu;
    seconds = (pair ? 1 : elsewhere) * bytes / rate;
  }
  terms.network_seconds = seconds;
  terms.wire_bytes = pair ? 0 : (per_node - 1) * bytes;
  terms.fixed_seconds = network.exchange_start(bytes, pair ? 1 : elsewhere);
  if (exchange == Exchange::AllToAll) {
    terms.fixed_seconds += network.small_seconds(bytes, elsewhere);
  }
  terms.wire_seconds = terms.wire_bytes / read.rate(Param::NcclPortShare);
  terms.port_seconds = terms.wire_seconds;
  terms.channel_seconds = read.has(Param::NcclOverlap)
                              ? overlapped(read, terms.port_seconds, seconds)
                              : terms.port_seconds + seconds;
  terms.seconds = terms.fixed_seconds + terms.channel_seconds;
  return terms;
}

/// What a transfer gets through the host's memory: as a copy that is staged there, on the same way;
/// of several at once what NCCL's ring gets through each GPU by its own search.
double host_path_rate(Reading& read, const Tuning& tuning, Exchange exchange) {
  const bool one = exchange == Exchange::SendRecv || exchange == Exchange::OneWay;
  if (one && read.has(Param::P2pStagedBandwidth)) return read.rate(Param::P2pStagedBandwidth);
  const auto& ring = tuning.graphs.ring;
  return ring.channels * double{ring.intra_gbps} * 1e9 * slot_factor(read, tuning);
}

/// NCCL puts no price on send/recv: the ports' time after the latency of a ring.
Terms priced(Reading& read, const Tuning& tuning, Exchange exchange, Protocol protocol,
             double wire_bytes) {
  const float latency =
      tuning.latency[index_of(Function::AllGather)][index_of(Algorithm::Ring)][index_of(protocol)];
  const double port_rate =
      read.rate(Param::NcclPortShare) * host_path_factor(read, tuning, Param::NcclHostPathPairs);
  const bool by_host = tuning.leaves_nvlink() || tuning.topology.is_wider_than_bridges();
  Terms terms;
  terms.wire_bytes = wire_bytes;
  terms.wire_seconds = wire_bytes / port_rate;
  terms.fixed_seconds = latency * 1e-6;
  terms.port_seconds = wire_bytes / (by_host ? host_path_rate(read, tuning, exchange) : port_rate);
  terms.channel_seconds = terms.port_seconds;
  terms.seconds = terms.fixed_seconds + terms.channel_seconds;
  return terms;
}

}  // namespace

double slot_factor(Reading& read, const Tuning& tuning) {
  const Topology& topology = tuning.topology;
  const bool is_pcie = topology.link == Link::PciHost || topology.link == Link::PciSwitch;
  if (!is_pcie || topology.nodes > 1 || !read.has(Param::NvlinkBandwidth)) return 1;
  return read.rate(Param::NvlinkBandwidth) / (double{topology.pci_gbps} * 1e9);
}

double host_path_factor(Reading& read, const Tuning& tuning, Param share) {
  constexpr double kPair = 2;
  const Topology& topology = tuning.topology;
  const bool by_host = topology.link == Link::PciHost && topology.nodes == 1;
  if (!by_host || !read.has(share) || !read.has(Param::NcclHostPathSharing)) return 1;
  return read.value(share) *
         std::pow(kPair / tuning.ranks(), read.value(Param::NcclHostPathSharing));
}

CollectiveTime pair_time(Reading& read, const Tuning& tuning, Exchange exchange, Bytes size,
                         std::uint32_t peers, Peer peer, bool direct, std::uint32_t root) {
  const Transfer transfer = transfer_of(tuning, size, peer);
  CollectiveTime time;
  time.choice = {Algorithm::Ring, transfer.protocol, transfer.channels, kP2pThreads};
  time.choice.direct = direct && transfer.protocol == Protocol::Simple && peer == Peer::SameNode &&
                       tuning.stays_on_nvlink();
  const auto bytes = static_cast<double>(size.count);
  std::optional<Terms> measured;
  if (peer == Peer::OtherNode) {
    const Network network{read, tuning.topology};
    time.model = network.is_known() ? Model::Pairs : Model::Price;
    time.terms = between_nodes(read, network, tuning.topology, exchange, transfer.channels, bytes);
    return time;
  }
  if (!tuning.leaves_nvlink() && !tuning.topology.is_wider_than_bridges()) {
    measured = within_node(read, tuning.topology, exchange, time.choice, bytes, peers, root);
  }
  time.model = measured ? Model::Pairs : Model::Price;
  time.terms =
      measured ? *measured : priced(read, tuning, exchange, transfer.protocol, bytes * peers);
  return time;
}

}  // namespace foretrace::nccl
