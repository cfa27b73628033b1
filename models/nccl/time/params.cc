#include "models/nccl/time/params.h"

#include "scenarios/base/text/errors.h"

// A kind or an exchange that a switch below does not name is an error, not a warning.
#pragma GCC diagnostic error "-Wswitch"

namespace foretrace::nccl {
namespace {

/// By protocol: LL, LL128, Simple.
using RingRow = PerProtocol<RingParams>;

constexpr RingRow kAllReduceRing{
    {{Param::NcclAllReduceLlBase, Param::NcclAllReduceLlStep, Param::NcclAllReduceLlRound, {}, {}},
     {Param::NcclAllReduceLl128Base,
      Param::NcclAllReduceLl128Step,
      Param::NcclAllReduceLl128Drift,
      {},
      Param::NcclAllReduceChannelRate},
     {Param::NcclAllReduceSimpleBase, Param::NcclAllReduceSimpleStep,
      Param::NcclAllReduceSimpleDrift, Param::NcclAllReduceSimplePower,
      Param::NcclAllReduceChannelRate}}};
constexpr RingRow kAllGatherRing{
    {{Param::NcclAllGatherLlBase, Param::NcclAllGatherLlStep, Param::NcclAllGatherLlRound, {}, {}},
     {Param::NcclAllGatherLl128Base,
      Param::NcclAllGatherLl128Step,
      Param::NcclAllGatherLl128Drift,
      {},
      Param::NcclAllGatherChannelRate},
     {Param::NcclAllGatherSimpleBase, Param::NcclAllGatherSimpleStep,
      Param::NcclAllGatherSimpleDrift, Param::NcclAllGatherSimplePower,
      Param::NcclAllGatherChannelRate}}};
constexpr RingRow kReduceScatterRing{
    {{Param::NcclReduceScatterLlBase,
      Param::NcclReduceScatterLlStep,
      Param::NcclReduceScatterLlRound,
      {},
      {}},
     {Param::NcclReduceScatterLl128Base,
      Param::NcclReduceScatterLl128Step,
      Param::NcclReduceScatterLl128Drift,
      {},
      Param::NcclReduceScatterChannelRate},
     {Param::NcclReduceScatterSimpleBase, Param::NcclReduceScatterSimpleStep,
      Param::NcclReduceScatterSimpleDrift, Param::NcclReduceScatterSimplePower,
      Param::NcclReduceScatterChannelRate}}};
constexpr RingRow kBroadcastChain{
    {{Param::NcclBroadcastLlBase, Param::NcclBroadcastLlStep, Param::NcclBroadcastLlRound, {}, {}},
     {Param::NcclBroadcastLl128Base,
      Param::NcclBroadcastLl128Step,
      Param::NcclBroadcastLl128Drift,
      {},
      Param::NcclBroadcastChannelRate},
     {Param::NcclBroadcastSimpleBase, Param::NcclBroadcastSimpleStep,
      Param::NcclBroadcastSimpleDrift, Param::NcclBroadcastSimplePower,
      Param::NcclBroadcastChannelRate}}};
constexpr RingRow kReduceChain{
    {{Param::NcclReduceLlBase, Param::NcclReduceLlStep, Param::NcclReduceLlRound, {}, {}},
     {Param::NcclReduceLl128Base,
      Param::NcclReduceLl128Step,
      Param::NcclReduceLl128Drift,
      {},
      Param::NcclReduceChannelRate},
     {Param::NcclReduceSimpleBase, Param::NcclReduceSimpleStep, Param::NcclReduceSimpleDrift,
      Param::NcclReduceSimplePower, Param::NcclReduceChannelRate}}};

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

constexpr PairParams kSendRecvPairs{Param::NcclSendRecvLlBase,     Param::NcclSendRecvLlRate,
                                    Param::NcclSendRecvSimpleBase, Param::NcclSendRecvSimpleRate,
                                    Param::NcclSendRecvSimpleLast, Param::NcclSendRecvPort,
                                    Param::NcclSendRecvSimpleDrift};
constexpr PairParams kAllToAllPairs{Param::NcclAllToAllLlBase,     Param::NcclAllToAllLlRate,
                                    Param::NcclAllToAllSimpleBase, Param::NcclAllToAllSimpleRate,
                                    Param::NcclAllToAllSimpleLast, Param::NcclAllToAllPort,
                                    Param::NcclAllToAllSimpleDrift};
constexpr PairParams kGatherPairs{Param::NcclGatherLlBase,     Param::NcclGatherLlRate,
                                  Param::NcclGatherSimpleBase, Param::NcclGatherSimpleRate,
                                  Param::NcclGatherSimpleLast, Param::NcclGatherPort,
                                  Param::NcclGatherSimpleDrift};
constexpr PairParams kScatterPairs{Param::NcclScatterLlBase,     Param::NcclScatterLlRate,
                                   Param::NcclScatterSimpleBase, Param::NcclScatterSimpleRate,
                                   Param::NcclScatterSimpleLast, Param::NcclScatterPort,
                                   Param::NcclScatterSimpleDrift};

}  // namespace

RingParams ring_params(CollectiveKind kind, Protocol protocol) {
  return ring_row(kind)[index_of(protocol)];
}

std::optional<Param> last_step_param(CollectiveKind kind, Protocol protocol) {
  if (protocol != Protocol::Simple) return {};
  if (kind == CollectiveKind::Broadcast) return Param::NcclBroadcastLast;
  if (kind == CollectiveKind::Reduce) return Param::NcclReduceLast;
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
