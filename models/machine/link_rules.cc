#include "models/machine/link_rules.h"

#include <fmt/format.h>

#include <utility>

#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

std::optional<nccl::LinkFacts> facts_of(const Machine& machine) {
  try {
    return nccl::link_facts(machine);
  } catch (const UsageError&) {  // said where NCCL is asked for
    return {};
  }
}

std::string family_of(const nccl::LinkFacts& facts) {
  if (facts.link == nccl::Link::PciHost || facts.link == nccl::Link::PciSwitch) return "pcie";
  return facts.by_bridges ? "nvlink_bridge" : "nvlink";
}

void set_fact(Machine& machine, Param param, double value, std::string text) {
  Source source{.id = "facts",
                .kind = ParameterClass::Datasheet,
                .text = std::move(text),
                .learned_from = {},
                .command = {}};
  ParamValue fact{.value = value, .source = source.kind, .from = source.text, .range = {}};
  fact.origin = std::make_shared<const Source>(std::move(source));
  machine.set(param, std::move(fact));
}

void scale(Machine& machine, Param param, double factor) {
  if (!machine.has(param)) return;
  ParamValue value = machine.get(param);
  value.value *= factor;
  value.from += ", by the generation of PCIe";
  machine.set(param, std::move(value));
}

}  // namespace

std::optional<std::string> link_file(const Machine& base, const Machine& machine) {
  const auto there = facts_of(base), here = facts_of(machine);
  if (!there || !here) return {};
  const std::string family = family_of(*here);
  if (family == "nvlink" || family == family_of(*there)) return {};
  return family;
}

std::optional<std::string> tables_file(const Machine& base, const Machine& machine) {
  const auto there = facts_of(base), here = facts_of(machine);
  if (!there || !here || family_of(*here) == "pcie") return {};
  const bool same_gpu = nccl::gpu_kind(base.gpu_name) == nccl::gpu_kind(machine.gpu_name);
  if (same_gpu && there->link == here->link) return {};
  const bool is_amd = machine.gpu_name.starts_with("AMD");
  const std::uint32_t generation = here->capability / 10;
  const bool same_generation = !is_amd && generation == there->capability / 10;
  if (same_generation && here->link == nccl::Link::NvLinkMesh) return "mesh_tables";
  if (same_generation && here->link == nccl::Link::NvSwitch && generation >= 9) {
    return generation == 9 ? "hopper_tables" : "blackwell_tables";
  }
  return "left_out_tables";
}

void set_rates_of_links(const Machine& base, Machine& machine) {
  const auto there = facts_of(base), here = facts_of(machine);
  if (!there || !here) return;
  using enum Param;
  if (there->pci_gbps != here->pci_gbps) {
    for (const Param param :
         {H2dBandwidth, D2hBandwidth, DuplexBandwidth, HostLinkBandwidth, P2pStagedBandwidth}) {
      scale(machine, param, double{here->pci_gbps} / double{there->pci_gbps});
    }
  }
  if (family_of(*here) == "pcie") {
    if (family_of(*there) == "pcie" && there->pci_gbps == here->pci_gbps) return;
    set_fact(machine, NvlinkBandwidth, here->pci_gbps * 1e9,
             "the GPU's slot as NCCL counts it (nccl src/graph/topo.h): there is no NVLink");
  } else if (there->nvlink_bytes_per_second != here->nvlink_bytes_per_second) {
    set_fact(machine, NvlinkBandwidth, here->nvlink_bytes_per_second,
             "the GPU's NVLinks, by its kind");
  }
}

}  // namespace foretrace
