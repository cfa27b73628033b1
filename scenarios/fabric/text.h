// A fabric and faults as the text that read.h reads.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/fabric/fabric.h"
#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/unit.h"

namespace foretrace {

inline constexpr std::array<std::pair<std::string_view, FabricKind>, 4> kFabricKinds{
    {{"none", FabricKind::None},
     {"rail_optimized", FabricKind::RailOptimized},
     {"fat_tree", FabricKind::FatTree},
     {"dragonfly", FabricKind::Dragonfly}}};
inline constexpr std::array<std::pair<std::string_view, Placement>, 2> kPlacements{
    {{"block", Placement::Nodewise}, {"round_robin", Placement::RoundRobin}}};

/// A constant of `unit` in SI; reports what is none.
std::optional<double> fabric_value(const Quantity& quantity, Unit unit, const YamlNode& node,
                                   Problems& problems);

/// "{kind: fat_tree, leaf: {ports: 64, latency: 0.6us}, spine: {oversubscription: 2:1}}"
std::string fabric_text(const Fabric& fabric);
/// "{node: 7, nic: 3, bandwidth: 50%}"
std::string fault_text(const MachineFault& fault);
/// "[{node: 7, nic: 3, lost: true}]"
std::string faults_text(const std::vector<MachineFault>& faults);
std::string_view placement_text(Placement placement);

}  // namespace foretrace
