#include "models/nccl/time/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/constants/constants.h"
#include "models/nccl/rules/tuning.h"
#include "models/nccl/time/buffer_steps.h"
#include "models/nccl/time/hop_time.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

/// What NCCL goes over to when sizes grow: from LL to anything else, from LL128 to Simple; PAT and
/// rings by Simple to each other.
bool is_next(const Plan& plan, const Candidate& other) {
  const auto is_ring = [](Algorithm a) { return a == Algorithm::Ring || a == Algorithm::Pat; };
  if (plan.protocol != other.protocol) return other.protocol > plan.protocol;
  const bool simple = plan.protocol == Protocol::Simple && plan.algorithm != other.algorithm;
  return simple && is_ring(plan.algorithm) && is_ring(other.algorithm);
}

}  // namespace

double Network::value(Param param) const {
  if (is_known()) return read_.value(param);
  return constant(fmt::format("network.unknown.{}", info(param).key));
}

double Network::hop_seconds(const ProtocolParams& step, Protocol protocol, double payload) const {
  const double message = protocol == Protocol::LL ? 2 * payload : payload;
  const bool asks = message > value(Param::NetworkEager);
  const bool copied =
      read_.has(Param::NetworkCopied) && message > read_.value(Param::NetworkCopied);
  return value(step[protocol]) + (asks ? value(Param::NetworkRendezvous) : 0) +
         (copied ? read_.seconds(Param::NetworkCopy) : 0);
}

double Network::ring_pace(double part, bool all_reduce) const {
  if (topology_.nodes == 1 || !read_.has(Param::NcclNetRingPace)) return 0;
  const bool small = all_reduce && read_.has(Param::NcclNetRingSmallPart) &&
                     part <= read_.value(Param::NcclNetRingSmallPart);
  const double messages = part > kLeastSliceBytes ? 2 : 1;
  return messages * read_.seconds(small ? Param::NcclNetRingSmallPace : Param::NcclNetRingPace);
}

double Network::spread(Param share) const {
  if (topology_.nodes <= 2 || !read_.has(share)) return 1;
  return std::pow(read_.value(share), std::log2(topology_.nodes / 2.0));
}

double Network::proxies() const {
  const double of_node = std::max(read_.machine().gpus_per_node, topology_.gpus_per_node);
  return is_known() && read_.machine().gpus_per_node == 1 ? 1 : topology_.gpus_per_node / of_node;
}

double Network::seconds(double bytes, Algorithm algorithm, Protocol protocol,
                        bool first_chunks) const {
  if (topology_.nodes == 1) return 0;
  const bool ring = algorithm == Algorithm::Ring || algorithm == Algorithm::Pat;
  // Trees over more than two nodes: a node has two children. NVLSTree's trees, one for each GPU's
  // part, get as much as rings: 356, 366 and 387 GB/s of 512 MiB, 1 and 8 GiB on 8 nodes of 8 H100.
  const bool shares = algorithm == Algorithm::Tree && !first_chunks && topology_.nodes > 2;
  const double share = shares ? value(Param::NcclTreeEfficiency) : 1;
  const double nics = topology_.nics * double{topology_.nic_gbps} * 1e9;
  const double most = nics * value(Param::NcclNetEfficiency) * share * spread(Param::NcclNetSpread);
  if (protocol == Protocol::Simple) return bytes / most;
  const auto& with_flags = ring ? kNetRingRate : kNetTreeRate;
  if (protocol == Protocol::LL) {
    return bytes / std::min(most / 2, value(with_flags.ll) * proxies());
  }
  return bytes / std::min(most, value(with_flags.ll128) * proxies());
}

double Network::exchange_start(double bytes, double peers) const {
  double seconds = value(Param::NcclNetExchangeBase);
  if (read_.has(Param::NcclNetExchangePeer)) {
    seconds += peers * read_.seconds(Param::NcclNetExchangePeer);
  }
  const bool asks =
      read_.has(Param::NcclNetExchangeAsk) && bytes > read_.value(Param::NcclNetExchangeEager);
  return asks ? seconds + peers * read_.seconds(Param::NcclNetExchangeAsk) : seconds;
}

double Network::small_seconds(double bytes, double peers) const {
  if (!read_.has(Param::NcclNetExchangeSmall)) return 0;
  const bool small = bytes <= read_.value(Param::NcclNetExchangeSmall);
  return small ? peers * read_.seconds(Param::NcclNetExchangeSmallPeer) : 0;
}

double Network::exchange_rate() const {
  return double{topology_.nic_gbps} * 1e9 * value(Param::NcclNetExchangeEfficiency) *
         spread(Param::NcclNetExchangeSpread);
}

void limit_by_next(Reading& read, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                   const Plan& plan, Terms& terms) {
  if (tuning.topology.nodes == 1) return;
  // The tables are of whole nodes.
  const bool whole = tuning.topology.gpus_per_node == read.machine().gpus_per_node;
  const bool told = whole && kind == CollectiveKind::AllReduce && plan.protocol == Protocol::LL &&
                    read.has(Param::NcclNetFlagsLose);
  const double lose = told ? read.value(Param::NcclNetFlagsLose) : 1;
  std::optional<Terms> best;
  for (const Candidate& other : priced_candidates(tuning, {function_of(kind), bytes})) {
    if (!other.out.empty() || !is_next(plan, other)) continue;
    const std::uint32_t channels =
        is_nvls(other.algorithm) ? tuning.nvls_channels : tuning.channels;
    const Choice choice{other.algorithm, other.protocol, channels, plan.threads};
    const auto time = hop_time(read, tuning, kind, choice, bytes);
    if (time && (!best || time->seconds < best->seconds)) best = time;
  }
  if (!best || terms.seconds <= lose * best->seconds) return;
  terms = *best;
  for (double* const part :
       {&terms.seconds, &terms.fixed_seconds, &terms.hop_seconds, &terms.channel_seconds}) {
    *part *= lose;
  }
}

}  // namespace foretrace::nccl
