// What an operation over several nodes loads the links between them with.
//
// Loads are relative: an operation that keeps the NICs of a node busy for T seconds moves
// load x T x the bandwidth of a NIC over a link. The busiest NIC of a fabric without faults has
// load 1.
#pragma once

#include <cstdint>
#include <vector>

#include "models/fabric/links.h"

namespace foretrace {

/// Who talks to whom.
enum class Traffic : std::uint8_t {
  None,      ///< nobody leaves its node
  Ring,      ///< each node to the next one, on every rail
  Tree,      ///< two binary trees over the nodes, up and down
  Doubling,  ///< PAT: to the node 1, 2, 4, ... further
  Exchange,  ///< everybody to everybody
  Gather,    ///< everybody to the root
  Scatter    ///< the root to everybody
};

struct Load {
  std::uint32_t link = 0;
  double nics = 0;
};

/// The links' loads, and what the way through the fabric adds to the latency of the longest way.
struct FabricTraffic {
  std::vector<Load> loads;  ///< by link
  double latency = 0;       ///< seconds
};

/// The GPUs of an operation, by node in the order of the communicator's ranks.
struct NodePart {
  std::uint32_t node = 0;
  std::vector<std::uint32_t> gpus;  ///< of the node
};

/// The ranks of one communicator on the fabric.
class CommunicatorTraffic {
 public:
  /// `proxied`: NCCL moves exchanges to the GPU next to the receiver's rail first (PXN); it does
  /// where a node's GPUs have NVLink.
  CommunicatorTraffic(const FabricLinks& fabric, std::vector<NodePart> parts, bool proxied);

  /// `root`: the GPU of Gather and Scatter. `rounds`: how often a ring goes around.
  FabricTraffic of(Traffic traffic, Nic root, double rounds) const;
  /// From one node of parts() to another over all rails, each as much.
  FabricTraffic between(std::uint32_t from, std::uint32_t to) const;
  /// From one GPU to another.
  FabricTraffic between(Nic from_gpu, Nic to_gpu) const;
  const std::vector<NodePart>& parts() const { return parts_; }

 private:
  class Sum;
  std::vector<Nic> rails(const NodePart& part) const;
  void add_between(Sum& sum, std::uint32_t from, std::uint32_t to, double nics) const;
  void add_trees(Sum& sum) const;
  void add_exchange(Sum& sum) const;
  void add(Sum& sum, Traffic traffic, Nic root) const;
  Nic nic_of(Nic gpu) const;

  const FabricLinks& fabric_;
  std::vector<NodePart> parts_;
  bool proxied_;
  std::vector<std::vector<Nic>> rails_;  ///< of each part: those that rings use
};

/// nccl src/graph/trees.cc: a node's parent in the binary tree over nodes; the second tree is the
/// first one mirrored or, with an odd number of nodes, shifted by one.
std::uint32_t parent_node(std::uint32_t node, std::uint32_t nodes, bool second);

}  // namespace foretrace
