// The links between nodes as a fabric has them: pure, without an engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/fabric/fabric.h"

namespace foretrace {

/// What the fabric must know of nodes that are all alike.
struct FabricNodes {
  std::uint32_t nodes = 1;
  std::uint32_t gpus = 8;
  std::uint32_t nics = 8;  ///< of a node
  double nic_rate = 0;     ///< bytes/s of one, one direction
};

struct FabricLink {
  std::string name;  ///< "node3.nic5.out", "leaf2.up"
  double rate = 0;   ///< bytes/s
};

/// A NIC of a node.
struct Nic {
  std::uint32_t node = 0;
  std::uint32_t index = 0;
};

/// What the faults of such a part leave of its bandwidth or speed. `place`: its node, and which one
/// of the node it is.
double share_of(const std::vector<MachineFault>& faults, MachineFault::Part part, Nic place);

/// From one NIC to another.
struct FabricWay {
  std::vector<std::uint32_t> links;  ///< those of the NICs first and last
  std::uint32_t switches = 1;
};

class FabricLinks {
 public:
  /// Throws UsageError when a node has lost all its NICs.
  FabricLinks(const FabricNodes& nodes, const Fabric& fabric,
              const std::vector<MachineFault>& faults);

  const FabricNodes& nodes() const { return nodes_; }
  const Fabric& fabric() const { return fabric_; }
  const std::vector<FabricLink>& links() const { return links_; }

  bool is_lost(Nic nic) const { return lost_[nic_number(nic)]; }
  /// The NIC itself or, where it is lost, the next one of its node.
  Nic living(Nic nic) const;
  FabricWay way(Nic from, Nic to) const;
  std::uint32_t out_link(Nic nic) const { return 2 * nic_number(nic); }
  std::uint32_t in_link(Nic nic) const { return 2 * nic_number(nic) + 1; }
  /// Nodes with the same number are on the same leaves.
  std::uint32_t pod_of(std::uint32_t node) const { return node / nodes_of_pod_; }

 private:
  std::uint32_t nic_number(Nic nic) const { return nic.node * nodes_.nics + nic.index; }
  std::uint32_t leaf_of(Nic nic) const;
  std::uint32_t group_of(std::uint32_t leaf) const { return leaf / fabric_.group_leaves; }
  void add_nics(const std::vector<MachineFault>& faults);
  void add_leaves(const std::vector<MachineFault>& faults);
  void add_groups();

  FabricNodes nodes_;
  Fabric fabric_;
  std::uint32_t nodes_of_pod_ = 1;
  std::uint32_t leaves_ = 0, first_leaf_ = 0;
  std::uint32_t groups_ = 0, first_group_ = 0;
  std::vector<FabricLink> links_;
  std::vector<bool> lost_;
};

}  // namespace foretrace
