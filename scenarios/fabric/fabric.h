// The network between nodes and what is wrong with it, as a scenario or a machine file says it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace foretrace {

enum class FabricKind : std::uint8_t {
  None,           ///< full bisection: NICs are all that operations share
  RailOptimized,  ///< NIC k of each node of a pod is on leaf k of the pod
  FatTree,        ///< all NICs of a node are on one leaf
  Dragonfly       ///< the same; leaves are in groups, and every two groups have links of their own
};

struct Fabric {
  FabricKind kind = FabricKind::None;
  std::uint32_t leaf_ports = 64;    ///< NICs that a leaf serves
  double leaf_latency = 0.6e-6;     ///< seconds of a switch; the first is part of what was measured
  double oversubscription = 1;      ///< of a leaf's NICs over its links to spines; of a dragonfly's
                                    ///< group over its links to other groups
  std::uint32_t group_leaves = 16;  ///< dragonfly: leaves of a group
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// What is slower than the others of its kind. Shares are of what the part would do.
struct MachineFault {
  enum class Part : std::uint8_t {
    Nic,   ///< `share` of its bandwidth; 0: lost
    Gpu,   ///< kernels: `share` of its speed, `jitter` of a kernel's time more at random
    Link,  ///< the GPU's NVLinks: `share` of their bandwidth
    Leaf   ///< `share` of the links to spines
  };
  Part part = Part::Nic;
  std::optional<std::uint32_t> node;   ///< none: every node
  std::optional<std::uint32_t> index;  ///< of the part in its node; none: all of them
  double share = 1;
  double jitter = 0;  ///< at most so much of a kernel's time is added, uniformly
  int line = 0, column = 0;
  bool is_of(std::uint32_t of_node, std::uint32_t of_index) const {
    return node.value_or(of_node) == of_node && index.value_or(of_index) == of_index;
  }
};

/// Which node a process is on.
enum class Placement : std::uint8_t {
  Nodewise,   ///< block: nodes are filled one after the other
  RoundRobin  ///< process p is on node p modulo the nodes
};

}  // namespace foretrace
