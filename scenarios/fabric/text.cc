#include "scenarios/fabric/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace foretrace {
namespace {

template <class Enum, std::size_t N>
std::string_view word_of(const std::array<std::pair<std::string_view, Enum>, N>& names,
                         Enum value) {
  for (const auto& [name, of] : names) {
    if (of == value) return name;
  }
  return {};
}

}  // namespace

std::string fabric_text(const Fabric& fabric) {
  std::string text = fmt::format("{{kind: {}", word_of(kFabricKinds, fabric.kind));
  if (fabric.kind != FabricKind::None) {
    text += fmt::format(", leaf: {{ports: {}, latency: {:g}us}}", fabric.leaf_ports,
                        fabric.leaf_latency * 1e6);
    if (fabric.kind == FabricKind::Dragonfly) {
      text += fmt::format(", group: {{leaves: {}}}", fabric.group_leaves);
    }
    text += fmt::format(", spine: {{oversubscription: \"{:g}:1\"}}", fabric.oversubscription);
  }
  return text + "}";
}

std::string fault_text(const MachineFault& fault) {
  constexpr std::array<std::string_view, 4> kParts{"nic", "gpu", "link", "leaf"};
  std::string text = "{";
  if (fault.node) text += fmt::format("node: {}, ", *fault.node);
  text += fmt::format("{}: {}", kParts[static_cast<std::size_t>(fault.part)],
                      fault.index ? std::to_string(*fault.index) : "all");
  const bool is_gpu = fault.part == MachineFault::Part::Gpu;
  if (fault.share == 0) {
    text += ", lost: true";
  } else if (fault.share != 1 || !is_gpu) {
    text += fmt::format(", {}: {:g}%", is_gpu ? "speed" : "bandwidth", fault.share * 100);
  }
  if (fault.jitter > 0) text += fmt::format(", jitter: {:g}%", fault.jitter * 100);
  return text + "}";
}

std::string faults_text(const std::vector<MachineFault>& faults) {
  std::vector<std::string> all;
  for (const MachineFault& fault : faults) all.push_back(fault_text(fault));
  return fmt::format("[{}]", fmt::join(all, ", "));
}

std::string_view placement_text(Placement placement) { return word_of(kPlacements, placement); }

}  // namespace foretrace
