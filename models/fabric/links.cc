#include "models/fabric/links.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/base/text/errors.h"

namespace foretrace {

double share_of(const std::vector<MachineFault>& faults, MachineFault::Part part, Nic place) {
  double share = 1;
  for (const MachineFault& fault : faults) {
    if (fault.part == part && fault.is_of(place.node, place.index)) share *= fault.share;
  }
  return share;
}

FabricLinks::FabricLinks(const FabricNodes& nodes, const Fabric& fabric,
                         const std::vector<MachineFault>& faults)
    : nodes_{nodes}, fabric_{fabric} {
  add_nics(faults);
  if (fabric.kind == FabricKind::None) return;
  const bool rails = fabric.kind == FabricKind::RailOptimized;
  nodes_of_pod_ = std::max(1U, rails ? fabric.leaf_ports : fabric.leaf_ports / nodes.nics);
  const std::uint32_t pods = pod_of(nodes.nodes - 1) + 1;
  leaves_ = rails ? pods * nodes.nics : pods;
  first_leaf_ = static_cast<std::uint32_t>(links_.size());
  if (fabric.kind == FabricKind::Dragonfly) {
    add_groups();
  } else {
    add_leaves(faults);
  }
}

void FabricLinks::add_nics(const std::vector<MachineFault>& faults) {
  for (std::uint32_t node = 0; node < nodes_.nodes; ++node) {
    std::uint32_t alive = 0;
    for (std::uint32_t nic = 0; nic < nodes_.nics; ++nic) {
      const double share = share_of(faults, MachineFault::Part::Nic, {node, nic});
      lost_.push_back(share == 0);
      alive += share > 0 ? 1 : 0;
      const double rate = nodes_.nic_rate * (share > 0 ? share : 1);  // nobody uses a lost one
      links_.push_back({fmt::format("node{}.nic{}.out", node, nic), rate});
      links_.push_back({fmt::format("node{}.nic{}.in", node, nic), rate});
    }
    if (alive == 0) throw UsageError{fmt::format("faults: node {} has no NIC left", node)};
  }
}

void FabricLinks::add_leaves(const std::vector<MachineFault>& faults) {
  const double rate = fabric_.leaf_ports * nodes_.nic_rate / fabric_.oversubscription;
  for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
    const double share = share_of(faults, MachineFault::Part::Leaf, {0, leaf});
    links_.push_back({fmt::format("leaf{}.up", leaf), rate * share});
    links_.push_back({fmt::format("leaf{}.down", leaf), rate * share});
  }
}

/// The links of a group to the others, shared out evenly.
void FabricLinks::add_groups() {
  constexpr std::uint32_t kMostGroups = 1000;  // a million links between them
  groups_ = group_of(leaves_ - 1) + 1;
  if (groups_ > kMostGroups) {
    throw UsageError{
        fmt::format("fabric: {} groups of a dragonfly are more than {}\n  hint: more "
                    "ports for a leaf, or more leaves for a group",
                    groups_, kMostGroups)};
  }
  first_group_ = first_leaf_;
  const double nics = 1.0 * fabric_.leaf_ports * fabric_.group_leaves;
  const double rate = nics * nodes_.nic_rate / fabric_.oversubscription / std::max(1U, groups_ - 1);
  for (std::uint32_t from = 0; from < groups_; ++from) {
    for (std::uint32_t to = 0; to < groups_; ++to) {
      links_.push_back({fmt::format("group{}.to{}", from, to), rate});
    }
  }
}

Nic FabricLinks::living(Nic nic) const {
  for (std::uint32_t i = 0; i < nodes_.nics && is_lost(nic); ++i) {
    nic.index =
        (nic.index ^ 1) < nodes_.nics && i == 0 ? nic.index ^ 1 : (nic.index + 1) % nodes_.nics;
  }
  return nic;
}

std::uint32_t FabricLinks::leaf_of(Nic nic) const {
  const std::uint32_t pod = pod_of(nic.node);
  return fabric_.kind == FabricKind::RailOptimized ? pod * nodes_.nics + nic.index : pod;
}

FabricWay FabricLinks::way(Nic from, Nic to) const {
  FabricWay way{{out_link(from)}, 1};
  const std::uint32_t source = fabric_.kind == FabricKind::None ? 0 : leaf_of(from);
  const std::uint32_t target = fabric_.kind == FabricKind::None ? 0 : leaf_of(to);
  if (source != target && fabric_.kind == FabricKind::Dragonfly) {
    const std::uint32_t out = group_of(source);
    const std::uint32_t in = group_of(target);
    way.switches = out == in ? 2 : 4;  // at most: a leaf beside the one with the link, at each end
    if (out != in) way.links.push_back(first_group_ + out * groups_ + in);
  } else if (source != target) {
    way.switches = 3;
    way.links.insert(way.links.end(), {first_leaf_ + 2 * source, first_leaf_ + 2 * target + 1});
  }
  way.links.push_back(in_link(to));
  return way;
}

}  // namespace foretrace
