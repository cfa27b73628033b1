// The network between nodes: where a machine or a scenario says its fabric, NICs, leaves and spines
// are links of the engine, and operations of all communicators share them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "models/fabric/traffic.h"
#include "models/nccl/rules/types.h"
#include "scenarios/program/ops.h"
#include "sim/chunk/network.h"
#include "sim/engine/engine.h"

namespace foretrace::sim {

/// Links that an operation loads alike: `nics` times what it moves through a NIC.
struct NetworkFlow {
  PathId path;
  double nics = 1;
};

/// What an operation sends over the network, and by how much its way is longer than through one
/// switch.
struct NetworkRoute {
  std::vector<NetworkFlow> flows;
  double nic_rate = 0;  ///< bytes/s that `nics` counts
  Duration latency{};
  Bytes bytes(const NetworkFlow& flow, Duration busy) const {
    return {static_cast<std::uint64_t>(to_seconds(busy) * nic_rate * flow.nics)};
  }
};

class NetworkLinks {
 public:
  /// `chunks` may be null: flow fidelity.
  NetworkLinks(Engine& engine, FabricLinks fabric, ChunkNetwork* chunks);

  const FabricLinks& fabric() const { return fabric_; }
  NetworkRoute route(const FabricTraffic& traffic);
  /// The same for slices: a number for ChunkLink::way.
  std::uint32_t way(const FabricTraffic& traffic);

 private:
  Engine& engine_;
  FabricLinks fabric_;
  ChunkNetwork* chunks_;
  std::vector<LinkId> links_;
};

/// One communicator's part of the network.
class CommNetwork {
 public:
  /// `gpus`: each rank's node, and which of its GPUs it is.
  CommNetwork(NetworkLinks& links, const std::vector<Nic>& gpus, bool proxied);

  /// Of an operation of all ranks; empty flows where nobody leaves its node.
  const NetworkRoute& of(Traffic traffic, std::uint32_t root, double rounds);
  const NetworkRoute& between(std::uint32_t from, std::uint32_t to);
  /// Of a slice from one rank to another: by all rails of their nodes, or by their own NICs.
  std::uint32_t way(std::uint32_t from, std::uint32_t to, bool own_nics);

 private:
  NetworkLinks& links_;
  std::vector<Nic> gpus_;            ///< by rank
  std::vector<std::uint32_t> part_;  ///< by rank: index of its node
  CommunicatorTraffic traffic_;
  std::map<std::tuple<Traffic, std::uint32_t, double>, NetworkRoute> routes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, NetworkRoute> pairs_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> ways_;
};

/// Who talks to whom when NCCL runs `kind` by `algorithm`.
Traffic traffic_of(CollectiveKind kind, nccl::Algorithm algorithm);

}  // namespace foretrace::sim
