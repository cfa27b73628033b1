// A machine whose NCCL times can be added up in the head: a port moves 100 GB/s for NCCL, two
// bottlenecks add up, and everything else is what a test says.
#pragma once

#include <initializer_list>
#include <utility>

#include "models/machine/reading.h"
#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl::test {

using Values = std::initializer_list<std::pair<Param, double>>;

inline Machine small_machine(Values values) {
  Machine machine;
  machine.name = "small";
  const auto set = [&](Values all) {
    for (const auto& [param, value] : all) {
      machine.set(param, {value, 0, ParameterClass::Assumed, "test", ""});
    }
  };
  set({{Param::NvlinkBandwidth, 200e9},
       {Param::NcclPortShare, 0.5},
       {Param::NcclOverlap, 1},
       {Param::NcclChannelOverlap, 8},
       {Param::NcclChannelDoubling, 0},
       {Param::NcclThreadFloor, 0.2},
       {Param::NcclLlFill, 8 * 1024},
       {Param::NcclHiddenStep, 128 * 1024},
       {Param::NcclExchangeLeast, 128 * 1024},
       {Param::NetworkEager, 1e9},
       {Param::NetworkRendezvous, 0}});
  set(values);
  return machine;
}

/// Nodes of H200 with eight NICs of 50 GB/s each.
inline Topology nodes_of(std::uint32_t nodes, std::uint32_t gpus) {
  Topology topology;
  topology.nodes = nodes;
  topology.gpus_per_node = gpus;
  return topology;
}

}  // namespace foretrace::nccl::test
