#include "models/machine/parts/limit_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/machine/parts/part.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

/// What the machine's part of this folder is called; empty where it has none.
std::string called(const Machine& machine, PartFolder folder) {
  const std::string prefix{std::string{folder_name(folder)} + "/"};
  const auto part = std::ranges::find_if(
      machine.parts, [&](const std::string& name) { return name.starts_with(prefix); });
  if (part == machine.parts.end()) return {};
  return load_part(folder, part->substr(prefix.size())).word("called");
}

/// The generation of PCIe whose slot NCCL counts so: 12 GB/s for the third, twice that for each one
/// more.
std::uint32_t pcie_generation(const Machine& machine) {
  if (machine.node.pcie) return *machine.node.pcie;
  const double gbps = nccl::link_facts(machine).pci_gbps;
  return 3 + static_cast<std::uint32_t>(std::lround(std::log2(gbps / 12)));
}

bool is_amd(const Machine& machine) { return machine.gpu_name.starts_with("AMD"); }

}  // namespace

std::string link_name(const Machine& machine) {
  if (std::string name = called(machine, PartFolder::Links); !name.empty()) return name;
  if (nccl::lacks_nvlink(machine)) return fmt::format("PCIe {}.0 x16", pcie_generation(machine));
  return is_amd(machine) ? "xGMI" : "NVLink";
}

std::string network_name(const Machine& machine) {
  std::string name = called(machine, PartFolder::Networks);
  return name.empty() ? "the network" : name;
}

}  // namespace foretrace
