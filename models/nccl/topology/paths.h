// Links and paths of one node, for NCCL's channel search: GPUs are numbered, then NICs.
#pragma once

#include <cstdint>
#include <vector>

#include "models/nccl/topology/topology.h"

namespace foretrace::nccl {

struct SearchPath {
  std::vector<std::uint32_t> links;  ///< indices of SearchNode::budget
  Path type = Path::Dis;
  float gbps = 0;
};

struct SearchNode {
  std::uint32_t gpus = 0;
  std::uint32_t nics = 0;         ///< 0 on one node
  std::vector<float> budget;      ///< GB/s left on each directed link
  std::vector<float> nic_budget;  ///< of each NIC, counted once per channel
  std::uint32_t pci_links = 0;    ///< the first so many links are PCIe
  bool intel = false;
  bool nvswitch = false;
  float max_gbps = 0;                              ///< the fastest path
  float total_gbps = 0;                            ///< all of one GPU's links
  std::vector<std::vector<SearchPath>> between;    ///< [GPU][GPU]
  std::vector<std::vector<SearchPath>> to_nic;     ///< [GPU][NIC]
  std::vector<std::vector<SearchPath>> from_nic;   ///< [NIC][GPU]
  std::vector<SearchPath> to_switch, from_switch;  ///< [GPU], for NVLS

  std::uint32_t local_gpu(std::uint32_t nic) const { return nic * gpus / nics; }
};

SearchNode search_node(const Topology& topology, const Settings& settings);

}  // namespace foretrace::nccl
