// What a machine file says of a node beside its GPUs, as NCCL's topology needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/nccl/topology/topology.h"

namespace foretrace {

class MapReader;

/// Network cards of a node, one for each of the GPUs that a node may have.
inline constexpr std::uint32_t kMostNodeCards = 256;

/// Facts that a machine file leaves out are those that its kind of GPU is sold with.
struct NodeFacts {
  std::optional<nccl::Link> link;  ///< what connects the GPUs
  std::optional<nccl::Cpu> cpu;    ///< vendor
  std::optional<std::uint32_t> sockets;
  std::optional<std::uint32_t> pcie;    ///< generation, 3 to 5
  std::optional<std::uint32_t> nics;    ///< of the node
  std::optional<double> nic_bandwidth;  ///< bytes/s of one NIC, one direction
  std::optional<nccl::Path> nic_path;   ///< from a GPU to its NIC: PIX below a switch, else PHB
  /// NCCL's view of a GPU, where its kind does not tell: 90 for compute capability 9.0, NVLinks of
  /// the module, and those of a card with all its bridges.
  std::optional<std::uint32_t> capability, nvlinks, bridge_links;
};

/// The facts link, cpu and nic_path by their words; empty ones are not known.
NodeFacts known_facts(const std::vector<std::pair<std::string, std::string>>& words);

/// Takes the facts' keys from the map `node`; what is impossible is an error there.
NodeFacts read_node_facts(MapReader& node);

/// The facts as key and text, in a file's order: those that are known.
std::vector<std::pair<std::string, std::string>> node_facts_text(const NodeFacts& facts);

}  // namespace foretrace
