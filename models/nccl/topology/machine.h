// A machine file's GPUs as NCCL's search sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// `ranks` GPUs, spread evenly over `nodes` nodes of `machine`: generation and network are those
/// that its kind of GPU is sold with, NVLinks as many as its nvlink.bandwidth needs. Throws
/// UsageError where that is not known, or where the ranks do not fit.
Topology topology_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes);

/// The kind of GPU by which NCCL's view of it is known: "H100" of "NVIDIA H100 80GB HBM3"; the
/// whole name where none is.
std::string gpu_kind(const std::string& gpu_name);

/// CUDA's compute capability of it, 90 for 9.0; none where the kind is not known.
std::optional<std::uint32_t> gpu_capability(const std::string& gpu_name);

/// What connects the GPUs of a node, as the file says it or as their kind is sold.
struct LinkFacts {
  Link link = Link::NvSwitch;
  std::uint32_t capability = 90;       ///< CUDA's compute capability, 90 for 9.0
  std::uint32_t nvlinks = 0;           ///< of one GPU
  bool by_bridges = false;             ///< the NVLinks are those of bridges between cards
  double nvlink_bytes_per_second = 0;  ///< of one GPU, one direction, as datasheets count
  float pci_gbps = 0;                  ///< of its slot, as NCCL counts
};
/// Throws UsageError where the GPU is not known or cannot have the link that the file says.
LinkFacts link_facts(const Machine& machine);

/// Whether its GPUs are of a known kind and talk over PCIe alone.
bool lacks_nvlink(const Machine& machine);

/// Whether a node of `machine` is an NVLink domain of several hosts: more GPUs of a kind that is
/// sold in trays (GB200, GB300) than a tray has. To NCCL such a domain is one node.
bool is_multi_host_domain(const Machine& machine);

/// Of one NIC, one direction.
double nic_bytes_per_second(const Machine& machine);

/// Rings as fitted from a log of this machine, in place of the search's.
std::optional<Rings> rings_of(const Machine& machine);

Tuning tuning_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes = 1,
                 const Settings& settings = {});

}  // namespace foretrace::nccl
