#include "models/nccl/time/params.h"

#include "scenarios/text/errors.h"

// A kind or an exchange that a switch below does not name is an error, not a warning.
#pragma GCC diagnostic error "-Wswitch"

namespace foretrace::nccl {
namespace {

using enum Param;

/// By protocol: LL, LL128, Simple.
using RingRow = PerProtocol<RingParams>;

constexpr RingRow kAllReduceRing{
    {{NcclAllReduceLlBase, NcclAllReduceLlStep, NcclAllReduceLlRound, {}, {}},
     {NcclAllReduceLl128Base,
      NcclAllReduceLl128Step,
      NcclAllReduceLl128Drift,
      {},
      NcclAllReduceChannelRate},
     {NcclAllReduceSimpleBase, NcclAllReduceSimpleStep, NcclAllReduceSimpleDrift,
      NcclAllReduceSimplePower, NcclAllReduceChannelRate}}};
constexpr RingRow kAllGatherRing{
    {{NcclAllGatherLlBase, NcclAllGatherLlStep, NcclAllGatherLlRound, {}, {}},
     {NcclAllGatherLl128Base,
      NcclAllGatherLl128Step,
      NcclAllGatherLl128Drift,
      {},
      NcclAllGatherChannelRate},
     {NcclAllGatherSimpleBase, NcclAllGatherSimpleStep, NcclAllGatherSimpleDrift,
      NcclAllGatherSimplePower, NcclAllGatherChannelRate}}};
constexpr RingRow kReduceScatterRing{
    {{NcclReduceScatterLlBase, NcclReduceScatterLlStep, NcclReduceScatterLlRound, {}, {}},
     {NcclReduceScatterLl128Base,
      NcclReduceScatterLl128Step,
      NcclReduceScatterLl128Drift,
      {},
      NcclReduceScatterChannelRate},
     {NcclReduceScatterSimpleBase, NcclReduceScatterSimpleStep, NcclReduceScatterSimpleDrift,
      NcclReduceScatterSimplePower, NcclReduceScatterChannelRate}}};
constexpr RingRow kBroadcastChain{
    {{NcclBroadcastLlBase, NcclBroadcastLlStep, NcclBroadcastLlRound, {}, {}},
     {NcclBroadcastLl128Base,
      NcclBroadcastLl128Step,
      NcclBroadcastLl128Drift,
      {},
      NcclBroadcastChannelRate},
     {NcclBroadcastSimpleBase, NcclBroadcastSimpleStep, NcclBroadcastSimpleDrift,
      NcclBroadcastSimplePower, NcclBroadcastChannelRate}}};
constexpr RingRow kReduceChain{
    {{NcclReduceLlBase, NcclReduceLlStep, NcclReduceLlRound, {}, {}},
     {NcclReduceLl128Base, NcclReduceLl128Step, NcclReduceLl128Drift, {}, NcclReduceChannelRate},
     {NcclReduceSimpleBase, NcclReduceSimpleStep, NcclReduceSimpleDrift, NcclReduceSimplePower,
      NcclReduceChannelRate}}};

const RingRow& ring_row(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return kAllReduceRing;
    case CollectiveKind::AllGather:
      return kAllGatherRing;
    case CollectiveKind::ReduceScatter:
      return kReduceScatterRing;
    case CollectiveKind::Broadcast:
      return kBroadcastChain;
    case CollectiveKind::Reduce:
      return kReduceChain;
    case CollectiveKind::AllToAll:
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
      break;
  }
  FORETRACE_CHECK(false, "all_to_all, gather and scatter are made of sends and receives");
}

constexpr PairParams kSendRecvPairs{
    NcclSendRecvLlBase,     NcclSendRecvLlRate, NcclSendRecvSimpleBase, NcclSendRecvSimpleRate,
    NcclSendRecvSimpleLast, NcclSendRecvPort,   NcclSendRecvSimpleDrift};
constexpr PairParams kAllToAllPairs{
    NcclAllToAllLlBase,     NcclAllToAllLlRate, NcclAllToAllSimpleBase, NcclAllToAllSimpleRate,
    NcclAllToAllSimpleLast, NcclAllToAllPort,   NcclAllToAllSimpleDrift};
constexpr PairParams kGatherPairs{NcclGatherLlBase,     NcclGatherLlRate,     NcclGatherSimpleBase,
                                  NcclGatherSimpleRate, NcclGatherSimpleLast, NcclGatherPort,
                                  NcclGatherSimpleDrift};
constexpr PairParams kScatterPairs{
    NcclScatterLlBase,     NcclScatterLlRate, NcclScatterSimpleBase, NcclScatterSimpleRate,
    NcclScatterSimpleLast, NcclScatterPort,   NcclScatterSimpleDrift};

}  // namespace

RingParams ring_params(CollectiveKind kind, Protocol protocol) {
  return ring_row(kind)[index_of(protocol)];
}

std::optional<Param> last_step_param(CollectiveKind kind, Protocol protocol) {
  if (protocol != Protocol::Simple) return {};
  if (kind == CollectiveKind::Broadcast) return NcclBroadcastLast;
  if (kind == CollectiveKind::Reduce) return NcclReduceLast;
  return {};
}

PairParams pair_params(Exchange exchange) {
  switch (exchange) {
    case Exchange::SendRecv:
    case Exchange::OneWay:
      return kSendRecvPairs;
    case Exchange::AllToAll:
      return kAllToAllPairs;
    case Exchange::Gather:
      return kGatherPairs;
    case Exchange::Scatter:
      break;
  }
  return kScatterPairs;
}

Exchange exchange_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllToAll:
      return Exchange::AllToAll;
    case CollectiveKind::Gather:
      return Exchange::Gather;
    case CollectiveKind::Scatter:
      return Exchange::Scatter;
    case CollectiveKind::AllReduce:
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce:
      break;
  }
  FORETRACE_CHECK(false, "not made of sends and receives");
}

}  // namespace foretrace::nccl
