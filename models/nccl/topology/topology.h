// The machine as NCCL's graph search sees it, for machines whose nodes are all alike, and the
// graphs that the search finds on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "models/nccl/rules/constants.h"
#include "models/nccl/rules/settings.h"
#include "models/nccl/rules/types.h"

namespace foretrace::nccl {

enum class Link : std::uint8_t {
  NvSwitch,      ///< every GPU's NVLinks go to switches
  NvLinkMesh,    ///< every pair of GPUs shares the same number of NVLinks
  NvLinkBridge,  ///< GPUs 0 and 1, 2 and 3, ... are pairs by NVLink bridges; else PCIe switches
  PciSwitch,     ///< peer to peer below PCIe switches
  PciHost        ///< through the CPU: shared memory, or peer to peer where allowed
};

enum class Cpu : std::uint8_t { Intel, Amd, Arm };

struct Topology {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 8;  ///< that take part
  GpuGeneration generation = GpuGeneration::Hopper;
  std::uint32_t capability = 90;  ///< compute capability, 90 for 9.0
  Link link = Link::NvSwitch;
  std::uint32_t nvlinks = 18;   ///< of one GPU; of a mesh: to all its peers together
  std::uint32_t mesh_gpus = 4;  ///< GPUs of a mesh, whether they take part or not
  bool multicast = true;        ///< the switches can do NVLS
  Cpu cpu = Cpu::Intel;
  float pci_gbps = 48;  ///< x16: Gen3 12, Gen4 24, Gen5 48
  std::uint32_t sockets = 2;
  float socket_gbps = 22;     ///< between sockets: AMD 16, Intel 6 to 40, ARM 6
  std::uint32_t nics = 8;     ///< of one node, spread evenly over its GPUs
  float nic_gbps = 50;        ///< of one NIC
  Path nic_path = Path::Pix;  ///< from a GPU to its NIC: PHB where no switch joins them
  float nic_latency_us = 0;

  bool operator==(const Topology&) const = default;
  std::uint32_t ranks() const { return nodes * gpus_per_node; }
  bool has_nvlink() const {
    return link == Link::NvSwitch || link == Link::NvLinkMesh || link == Link::NvLinkBridge;
  }
  /// Whether data between GPUs of a node pass something else than NVLink: pairs have it alone.
  bool is_wider_than_bridges() const { return link == Link::NvLinkBridge && gpus_per_node > 2; }
};

/// nccl src/graph/topo.h: one NVLink, GB/s per direction.
float nvlink_gbps(std::uint32_t capability);

/// nccl src/include/graph.h, NCCL_TOPO_PATTERN_*.
enum class Pattern : std::uint8_t { BalancedTree = 1, SplitTree = 2, Tree = 3, Ring = 4, Nvls = 5 };

/// One graph of the search: as many channels of this speed.
struct SearchGraph {
  Pattern pattern = Pattern::Ring;
  std::uint32_t channels = 0;
  float intra_gbps = 0;  ///< of one channel inside a node
  float inter_gbps = 0;  ///< of one channel between nodes
  Path intra_path = Path::Loc;
  Path inter_path = Path::Pix;
  bool same_channels = true;  ///< every channel visits the GPUs in the same order
  float nic_latency_us = 0;
};

struct Graphs {
  SearchGraph ring, tree, nvls;
  Path gpu_path = Path::Loc;  ///< the longest between two GPUs of a node
  float gpu_gbps = 0;         ///< of that path
};

/// The rings as a log of the real machine shows them, where they are known better than by search.
struct Rings {
  std::uint32_t channels;
  float gbps;
  bool operator==(const Rings&) const = default;
};

/// What was searched for is remembered, also for other numbers of nodes: the search sees one node
/// and whether there are others.
Graphs search_graphs(const Topology& topology, const Constants& constants, const Settings& settings,
                     std::optional<Rings> rings = {});

/// Searches of this process that were not remembered: to count work by.
std::size_t searches_of_graphs();

}  // namespace foretrace::nccl
