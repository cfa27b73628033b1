#include "models/nccl/topology/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "models/nccl/rules/rccl.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

struct GpuKind {
  std::string_view name;  ///< part of the GPU's name; the first match counts
  std::uint32_t capability;
  std::uint32_t nvlinks;
  bool mesh_of_four;  ///< boards of four link every pair of GPUs, without switches
  float pci_gbps;
  Cpu cpu;                         ///< that such nodes are mostly sold with
  float nic_gbps;                  ///< one for each GPU
  std::uint32_t bridge_links = 0;  ///< NVLinks of a card with all the bridges that it takes
};

// Datasheets; PCIe and NVLink speeds as NCCL counts them (nccl src/graph/topo.h).
constexpr std::array kKinds{
    GpuKind{"GB200", 100, 18, false, 48, Cpu::Arm, 50},
    GpuKind{"GB300", 103, 18, false, 48, Cpu::Arm, 100},
    GpuKind{"B300", 103, 18, false, 48, Cpu::Intel, 100},
    GpuKind{"B200", 100, 18, false, 48, Cpu::Intel, 50},
    GpuKind{"GH200", 90, 18, true, 48, Cpu::Arm, 25},
    GpuKind{"H200 NVL", 90, 0, false, 48, Cpu::Intel, 50, 18},
    GpuKind{"H200", 90, 18, false, 48, Cpu::Intel, 50},
    GpuKind{"H100 PCIe", 90, 0, false, 48, Cpu::Intel, 50, 12},
    GpuKind{"H100 NVL", 90, 0, false, 48, Cpu::Intel, 50, 12},
    GpuKind{"H100", 90, 18, false, 48, Cpu::Intel, 50},
    GpuKind{"H800", 90, 8, false, 48, Cpu::Intel, 50},
    GpuKind{"H20", 90, 18, false, 48, Cpu::Intel, 50},
    GpuKind{"A100-PCIE", 80, 0, false, 24, Cpu::Intel, 25, 12},
    GpuKind{"A100 80GB PCIe", 80, 0, false, 24, Cpu::Intel, 25, 12},
    GpuKind{"A800 80GB PCIe", 80, 0, false, 24, Cpu::Intel, 25, 8},
    GpuKind{"A100", 80, 12, true, 24, Cpu::Amd, 25},
    GpuKind{"A800", 80, 8, false, 24, Cpu::Intel, 25},
    GpuKind{"V100-PCIE", 70, 0, false, 12, Cpu::Intel, 12},
    GpuKind{"V100", 70, 6, true, 12, Cpu::Intel, 12},
    GpuKind{"RTX PRO 6000", 120, 0, false, 48, Cpu::Amd, 50},
    GpuKind{"RTX 5090", 120, 0, false, 48, Cpu::Amd, 12},
    GpuKind{"RTX 4090", 89, 0, false, 24, Cpu::Amd, 12},
    GpuKind{"RTX 4080", 89, 0, false, 24, Cpu::Amd, 12},
    GpuKind{"RTX 5080", 120, 0, false, 48, Cpu::Amd, 12},
    GpuKind{"RTX 3090", 86, 0, false, 24, Cpu::Amd, 12, 4},
    GpuKind{"RTX A6000", 86, 0, false, 24, Cpu::Amd, 12, 4},
    GpuKind{"RTX A5500", 86, 0, false, 24, Cpu::Amd, 12, 4},
    GpuKind{"RTX A5000", 86, 0, false, 24, Cpu::Amd, 12, 4},
    GpuKind{"RTX 6000 Ada", 89, 0, false, 24, Cpu::Amd, 12},
    GpuKind{"RTX 2080", 75, 0, false, 12, Cpu::Intel, 12, 2},
    GpuKind{"TITAN RTX", 75, 0, false, 12, Cpu::Intel, 12, 2},
    GpuKind{"Quadro RTX 6000", 75, 0, false, 12, Cpu::Intel, 12, 2},
    GpuKind{"Quadro RTX 8000", 75, 0, false, 12, Cpu::Intel, 12, 2},
    GpuKind{"L40", 89, 0, false, 24, Cpu::Intel, 25},
    GpuKind{"L4", 89, 0, false, 24, Cpu::Intel, 25},
    GpuKind{"A40", 86, 0, false, 24, Cpu::Intel, 25, 4},
    GpuKind{"A30", 80, 0, false, 24, Cpu::Intel, 25, 4},
    GpuKind{"A10", 86, 0, false, 24, Cpu::Intel, 12},
    GpuKind{"T4", 75, 0, false, 12, Cpu::Intel, 12},
    GpuKind{"MI300X", 94, 7, false, 48, Cpu::Intel, 50},  // seven xGMI links, one to each other
    GpuKind{"GTX 10", 61, 0, false, 12, Cpu::Intel, 12},
};

const GpuKind* find_kind(const std::string& gpu_name) {
  const auto found = std::ranges::find_if(
      kKinds, [&](const GpuKind& kind) { return gpu_name.find(kind.name) != std::string::npos; });
  return found == kKinds.end() ? nullptr : &*found;
}

/// Where the machine says what NCCL sees of its GPU, that: else what its kind of GPU is sold with.
GpuKind kind_of(const Machine& machine) {
  const GpuKind* const known = find_kind(machine.gpu_name);
  GpuKind kind = known != nullptr ? *known : GpuKind{"", 0, 0, false, 48, Cpu::Intel, 50};
  if (const NodeFacts& facts = machine.node; facts.capability) {
    kind.capability = *facts.capability;
    kind.nvlinks = facts.nvlinks.value_or(kind.nvlinks);
    kind.bridge_links = facts.bridge_links.value_or(kind.bridge_links);
    return kind;
  }
  if (known != nullptr) return kind;
  throw UsageError{
      fmt::format("machine {}: NCCL's view of a '{}' is not known\n  hint: known are H100, H200, "
                  "B200, A100, V100, MI300X and others as nvidia-smi names them",
                  machine.name, machine.gpu_name)};
}

GpuGeneration generation_of(std::uint32_t capability) {
  if (capability >= 100) return GpuGeneration::Blackwell;
  if (capability >= 90) return GpuGeneration::Hopper;
  return capability >= 80 ? GpuGeneration::Ampere : GpuGeneration::Volta;
}

/// One NVLink, one direction, as datasheets count it: 25 GB/s up to Hopper but for the 14.0625 GB/s
/// of GA102 (RTX 3090, A40), 50 from Blackwell on.
double link_bytes_per_second(std::uint32_t capability) {
  if (capability >= 100) return 50e9;
  return capability == 86 ? 14.0625e9 : 25e9;
}

/// NVLinks of one GPU: of 25 GB/s per direction each up to Hopper, of 50 from Blackwell on (data
/// sheets), so a machine file that says half of a GPU's bandwidth says half of its links.
std::uint32_t nvlinks_of(const Machine& machine, const GpuKind& kind) {
  if (kind.nvlinks == 0 || !machine.has(Param::NvlinkBandwidth)) return kind.nvlinks;
  const double one = kind.capability >= 100 ? 50e9 : 25e9;
  const double links = std::round(machine.rate(Param::NvlinkBandwidth) / one);
  return static_cast<std::uint32_t>(std::clamp(links, 1.0, 2.0 * kind.nvlinks));
}

/// nccl src/graph/topo.h: x16 slots of PCIe 3 to 5; each generation doubles.
float pcie_gbps(std::uint32_t generation) {
  return std::ldexp(12.F, static_cast<int>(generation) - 3);
}

/// Between two sockets, of the generation that the GPU's PCIe goes with.
float socket_gbps(Cpu cpu, float pci_gbps) {
  if (cpu == Cpu::Amd) return 16;
  if (cpu == Cpu::Arm) return 6;
  return pci_gbps >= 48 ? 22.F : 10.F;
}

}  // namespace

LinkFacts link_facts(const Machine& machine) {
  const GpuKind kind = kind_of(machine);
  const NodeFacts& node = machine.node;
  const bool mesh = kind.mesh_of_four && machine.gpus_per_node <= 4;
  LinkFacts facts;
  facts.capability = kind.capability;
  facts.link = node.link.value_or(kind.nvlinks == 0 ? Link::PciHost
                                  : mesh            ? Link::NvLinkMesh
                                                    : Link::NvSwitch);
  facts.pci_gbps = node.pcie ? pcie_gbps(*node.pcie) : kind.pci_gbps;
  if (facts.link == Link::PciHost || facts.link == Link::PciSwitch) return facts;
  const double one = link_bytes_per_second(kind.capability);
  if (kind.nvlinks > 0 && facts.link != Link::NvLinkBridge) {
    facts.nvlinks = nvlinks_of(machine, kind);
    facts.nvlink_bytes_per_second = kind.nvlinks * one;
    return facts;
  }
  // Bridges join two cards; those of an H200 NVL also four, each with each.
  const bool four = gpu_kind(machine.gpu_name) == "H200 NVL" && machine.gpus_per_node <= 4;
  const bool all_joined = machine.gpus_per_node <= 2 || four;
  const std::uint32_t links = kind.nvlinks > 0 ? kind.nvlinks : kind.bridge_links;
  if (links == 0 || facts.link == Link::NvSwitch) {
    throw UsageError{fmt::format(
        "machine {}: a '{}' has no {}\n  hint: node: link: is {}pcie_switch or pcie_host",
        machine.name, machine.gpu_name, links == 0 ? "NVLinks" : "NVSwitch",
        links == 0 ? "" : "nvlink_bridge, ")};
  }
  if (facts.link == Link::NvLinkMesh && !all_joined) {
    throw UsageError{fmt::format(
        "machine {}: NVLink bridges join two '{}', not {}\n  hint: node: link: nvlink_bridge for "
        "pairs with bridges",
        machine.name, machine.gpu_name, machine.gpus_per_node)};
  }
  facts.by_bridges = true;
  facts.nvlinks = links;
  facts.nvlink_bytes_per_second = links * one;
  return facts;
}

Topology topology_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes) {
  if (nodes == 0 || ranks == 0 || ranks % nodes != 0) {
    throw UsageError{fmt::format("{} ranks cannot be spread evenly over {} nodes", ranks, nodes)};
  }
  if (ranks / nodes > machine.gpus_per_node) {
    throw UsageError{
        fmt::format("{} ranks on {} node{}: machine {} has {} GPUs a node\n  hint: "
                    "--nodes says over how many nodes they are spread",
                    ranks, nodes, nodes == 1 ? "" : "s", machine.name, machine.gpus_per_node)};
  }
  const GpuKind kind = kind_of(machine);
  Topology topology;
  topology.nodes = nodes;
  topology.gpus_per_node = ranks / nodes;
  topology.capability = kind.capability;
  topology.generation = generation_of(kind.capability);
  const NodeFacts& facts = machine.node;
  const LinkFacts links = link_facts(machine);
  topology.link = links.link;
  topology.nvlinks = links.nvlinks;
  topology.mesh_gpus = std::max(machine.gpus_per_node, 2u);
  topology.multicast = kind.capability >= 90;
  topology.cpu = facts.cpu.value_or(kind.cpu);
  topology.pci_gbps = links.pci_gbps;
  topology.sockets = facts.sockets.value_or(machine.gpus_per_node > 4 ? 2 : 1);
  topology.socket_gbps = socket_gbps(topology.cpu, topology.pci_gbps);
  // GPUs that do not take part leave their share of the NICs unused.
  const std::uint32_t nics = facts.nics.value_or(machine.gpus_per_node);
  topology.nics = std::max(1u, nics * topology.gpus_per_node / machine.gpus_per_node);
  topology.nic_gbps =
      facts.nic_bandwidth ? static_cast<float>(*facts.nic_bandwidth * 1e-9) : kind.nic_gbps;
  topology.nic_path = facts.nic_path.value_or(Path::Pix);
  return topology;
}

std::string gpu_kind(const std::string& gpu_name) {
  const GpuKind* const kind = find_kind(gpu_name);
  return kind == nullptr ? gpu_name : std::string{kind->name};
}

std::optional<std::uint32_t> gpu_capability(const std::string& gpu_name) {
  const GpuKind* const kind = find_kind(gpu_name);
  return kind == nullptr ? std::nullopt : std::optional{kind->capability};
}

bool lacks_nvlink(const Machine& machine) {
  const GpuKind* const kind = find_kind(machine.gpu_name);
  const bool by_kind =
      machine.node.nvlinks ? *machine.node.nvlinks == 0 : kind != nullptr && kind->nvlinks == 0;
  const Link link = machine.node.link.value_or(by_kind ? Link::PciHost : Link::NvSwitch);
  return link == Link::PciHost || link == Link::PciSwitch;
}

bool is_multi_host_domain(const Machine& machine) {
  constexpr std::uint32_t kTray = 4;  // NVIDIA GB200 NVL72: 18 trays of 4 GPUs
  const std::string kind = gpu_kind(machine.gpu_name);
  return (kind == "GB200" || kind == "GB300") && machine.gpus_per_node > kTray;
}

double nic_bytes_per_second(const Machine& machine) {
  return machine.node.nic_bandwidth.value_or(kind_of(machine).nic_gbps * 1e9);
}

std::optional<Rings> rings_of(const Machine& machine) {
  using enum Param;
  if (!machine.has(NcclSearchChannels) || !machine.has(NcclChannelBandwidth)) return {};
  if (machine.get(NcclSearchChannels).source != ParameterClass::Fit) return {};
  return Rings{machine.count(NcclSearchChannels),
               static_cast<float>(machine.rate(NcclChannelBandwidth) * 1e-9)};
}

Tuning tuning_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes,
                 const Settings& settings) {
  const auto rccl = parse_rccl_version(machine.nccl_version);
  // Of RCCL the choice is known on a whole node. Elsewhere NCCL's rules of the same release stand
  // in, which RCCL is a copy of.
  const bool is_whole_node = nodes == 1 && ranks == 8;
  if (rccl && is_whole_node) {
    return tune_rccl(topology_of(machine, ranks, nodes), *rccl, settings);
  }
  const Version version = rccl                           ? *rccl
                          : machine.nccl_version.empty() ? Version{}
                                                         : parse_version(machine.nccl_version);
  return tune(topology_of(machine, ranks, nodes), version, settings, rings_of(machine));
}

}  // namespace foretrace::nccl
