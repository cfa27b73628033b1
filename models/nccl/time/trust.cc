#include "models/nccl/time/trust.h"

#include <algorithm>
#include <vector>

#include "models/nccl/time/params.h"

namespace foretrace::nccl {
namespace {

using enum Param;

Param at_protocol(Param ll, Protocol protocol) {
  return static_cast<Param>(static_cast<int>(ll) + static_cast<int>(protocol));
}

std::vector<Param> exchange_params(std::optional<CollectiveKind> kind, Protocol protocol,
                                   std::uint32_t nodes) {
  if (nodes > 1) return {NcclNetExchangeBase, NcclNetExchangeEfficiency};
  Param first = NcclSendRecvLlBase;
  if (kind == CollectiveKind::AllToAll) first = NcclAllToAllLlBase;
  if (kind == CollectiveKind::Gather) first = NcclGatherLlBase;
  if (kind == CollectiveKind::Scatter) first = NcclScatterLlBase;
  const int offset = protocol == Protocol::LL ? 1 : 3;  // the channel's bandwidth
  return {static_cast<Param>(static_cast<int>(first) + offset), NcclPortBandwidth};
}

std::vector<Param> params_of(CollectiveKind kind, Algorithm algorithm, Protocol protocol,
                             std::uint32_t nodes) {
  const RingParams ring = ring_params(kind, protocol);
  std::vector<Param> params;
  const bool several = nodes > 1;
  const bool simple = protocol == Protocol::Simple;
  switch (algorithm) {
    case Algorithm::Ring:
    case Algorithm::Pat:
      params = {ring.step, ring.slope, NcclPortBandwidth};
      if (several) {
        params = {at_protocol(NcclNetRingLlStep, protocol),
                  simple ? NcclNetEfficiency : at_protocol(NcclNetRingLlRate, protocol)};
      }
      break;
    case Algorithm::Tree:
      params = {at_protocol(NcclTreeLlStep, protocol)};
      if (several) {
        params = {at_protocol(NcclNetTreeLlStep, protocol),
                  simple ? NcclNetEfficiency : at_protocol(NcclNetTreeLlRate, protocol)};
      }
      break;
    case Algorithm::Nvls:
      params = {NcclNvlsBase, NcclNvlsFill};
      break;
    case Algorithm::NvlsTree:
      params = {NcclNetTreeSimpleStep, NcclNvlsTreeFill};
      break;
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
      break;
  }
  // Between more than two nodes a tree's nodes have two children.
  if (nodes > 2 && (algorithm == Algorithm::Tree || algorithm == Algorithm::NvlsTree)) {
    params.push_back(NcclTreeEfficiency);
  }
  return params;
}

}  // namespace

std::optional<Trust> trust_of(const Machine& machine, std::optional<CollectiveKind> kind,
                              Algorithm algorithm, Protocol protocol, std::uint32_t nodes) {
  const std::vector<Param> params = !kind || is_send_recv(*kind)
                                        ? exchange_params(kind, protocol, nodes)
                                        : params_of(*kind, algorithm, protocol, nodes);
  if (params.empty()) return {};
  Trust trust;
  for (const Param param : params) {
    if (!machine.has(param)) return {};
    const ParamValue& value = machine.get(param);
    trust.least = std::max(trust.least, value.source);
    trust.spread = std::max(trust.spread, value.spread);
  }
  return trust;
}

}  // namespace foretrace::nccl
