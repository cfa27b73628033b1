#include "models/nccl/time/trust.h"

#include <algorithm>
#include <vector>

#include "models/nccl/time/time.h"

namespace foretrace {
namespace {

using enum Param;

Param at_protocol(Param ll, NcclProtocol protocol) {
  return static_cast<Param>(static_cast<int>(ll) + static_cast<int>(protocol));
}

std::vector<Param> exchange_params(std::optional<CollectiveKind> kind, NcclProtocol protocol,
                                   std::uint32_t nodes) {
  if (nodes > 1) return {NcclNetExchangeBase, NcclNetExchangeEfficiency};
  Param first = NcclSendRecvLlBase;
  if (kind == CollectiveKind::AllToAll) first = NcclAllToAllLlBase;
  if (kind == CollectiveKind::Gather) first = NcclGatherLlBase;
  if (kind == CollectiveKind::Scatter) first = NcclScatterLlBase;
  const int offset = protocol == NcclProtocol::LL ? 1 : 3;  // the channel's bandwidth
  return {static_cast<Param>(static_cast<int>(first) + offset), NcclPortBandwidth};
}

std::vector<Param> params_of(CollectiveKind kind, NcclAlgorithm algorithm, NcclProtocol protocol,
                             std::uint32_t nodes) {
  const NcclRingParams ring = nccl_ring_params(kind, protocol);
  std::vector<Param> params;
  const bool several = nodes > 1;
  const bool simple = protocol == NcclProtocol::Simple;
  switch (algorithm) {
    case NcclAlgorithm::Ring:
    case NcclAlgorithm::Pat:
      params = {ring.step, ring.slope, NcclPortBandwidth};
      if (several) {
        params = {at_protocol(NcclNetRingLlStep, protocol),
                  simple ? NcclNetEfficiency : at_protocol(NcclNetRingLlRate, protocol)};
      }
      break;
    case NcclAlgorithm::Tree:
      params = {at_protocol(NcclTreeLlStep, protocol)};
      if (several) {
        params = {at_protocol(NcclNetTreeLlStep, protocol),
                  simple ? NcclNetEfficiency : at_protocol(NcclNetTreeLlRate, protocol)};
      }
      break;
    case NcclAlgorithm::Nvls:
      params = {NcclNvlsBase, NcclNvlsFill};
      break;
    case NcclAlgorithm::NvlsTree:
      params = {NcclNetTreeSimpleStep, NcclNvlsTreeFill};
      break;
    case NcclAlgorithm::CollNetDirect:
    case NcclAlgorithm::CollNetChain:
      break;
  }
  // Between more than two nodes a tree's nodes have two children.
  if (nodes > 2 && (algorithm == NcclAlgorithm::Tree || algorithm == NcclAlgorithm::NvlsTree)) {
    params.push_back(NcclTreeEfficiency);
  }
  return params;
}

}  // namespace

std::optional<NcclTrust> nccl_trust(const Machine& machine, std::optional<CollectiveKind> kind,
                                    NcclAlgorithm algorithm, NcclProtocol protocol,
                                    std::uint32_t nodes) {
  const std::vector<Param> params = !kind || is_send_recv(*kind)
                                        ? exchange_params(kind, protocol, nodes)
                                        : params_of(*kind, algorithm, protocol, nodes);
  if (params.empty()) return {};
  NcclTrust trust;
  for (const Param param : params) {
    if (!machine.has(param)) return {};
    const ParamValue& value = machine.get(param);
    trust.least = std::max(trust.least, value.trusted_as());
    trust.spread = std::max(trust.spread, value.spread);
  }
  return trust;
}

}  // namespace foretrace
