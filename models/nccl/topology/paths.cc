#include "models/nccl/topology/paths.h"

#include <algorithm>

namespace foretrace::nccl {
namespace {

class Builder {
 public:
  Builder(const Topology& topology, const Settings& settings)
      : topology_{topology}, settings_{settings} {}

  SearchNode build() {
    node_.gpus = topology_.gpus_per_node;
    node_.nics = topology_.nodes > 1 ? topology_.nics : 0;
    node_.intel = topology_.cpu == Cpu::Intel;
    node_.nvswitch = topology_.link == Link::NvSwitch;
    add_pci();
    if (topology_.has_nvlink()) add_nvlink();
    if (node_.nics > 0) add_nics();
    sum_up();
    return std::move(node_);
  }

 private:
  using Ids = std::vector<std::uint32_t>;

  std::uint32_t link(float gbps) {
    node_.budget.push_back(gbps);
    return static_cast<std::uint32_t>(node_.budget.size() - 1);
  }

  std::uint32_t socket_of(std::uint32_t gpu) const {
    const std::uint32_t all = std::max(topology_.sockets, 1u);
    return gpu * std::min(all, node_.gpus) / node_.gpus;
  }

  void add_pci() {
    for (std::uint32_t g = 0; g < node_.gpus; ++g) {
      up_.push_back(link(topology_.pci_gbps));
      down_.push_back(link(topology_.pci_gbps));
    }
    for (std::uint32_t n = 0; n < node_.nics; ++n) {
      nic_up_.push_back(link(topology_.pci_gbps));
      nic_down_.push_back(link(topology_.pci_gbps));
    }
    node_.pci_links = static_cast<std::uint32_t>(node_.budget.size());
    const std::uint32_t sockets = std::max(topology_.sockets, 1u);
    socket_links_.assign(sockets, Ids(sockets));
    for (Ids& row : socket_links_) {
      for (std::uint32_t& id : row) id = link(topology_.socket_gbps);
    }
    node_.between.assign(node_.gpus, std::vector<SearchPath>(node_.gpus));
    for (std::uint32_t a = 0; a < node_.gpus; ++a) {
      for (std::uint32_t b = 0; b < node_.gpus; ++b) {
        if (a != b) node_.between[a][b] = host_path(up_[a], down_[b], socket_of(a), socket_of(b));
      }
    }
  }

  /// Below one switch, through one CPU, or from socket to socket.
  SearchPath host_path(std::uint32_t from, std::uint32_t to, std::uint32_t a, std::uint32_t b) {
    const float pci = topology_.pci_gbps;
    const bool below_switch =
        (topology_.link == Link::PciSwitch || topology_.link == Link::NvLinkBridge) &&
        settings_.p2p_level() != Path::Loc;
    if (a == b) return {{from, to}, below_switch ? Path::Pxb : Path::Phb, pci};
    return {{from, socket_links_[a][b], to}, Path::Sys, std::min(pci, topology_.socket_gbps)};
  }

  void add_nvlink() {
    const float one = nvlink_gbps(topology_.capability);
    const float all = one * static_cast<float>(topology_.nvlinks);
    // Peer to peer switched off: everything between GPUs goes through the CPU.
    const bool direct = settings_.p2p_level().value_or(Path::Pxb) >= Path::Nvl;
    Ids out, in;
    for (std::uint32_t g = 0; node_.nvswitch && g < node_.gpus; ++g) {
      out.push_back(link(all));
      in.push_back(link(all));
      node_.to_switch.push_back({{out[g]}, Path::Nvl, all});
      node_.from_switch.push_back({{in[g]}, Path::Nvl, all});
    }
    const bool bridges = topology_.link == Link::NvLinkBridge;
    const std::uint32_t peers = bridges ? 1 : std::max(topology_.mesh_gpus, 2u) - 1;
    const float pair = one * static_cast<float>(topology_.nvlinks / peers);
    const bool whole = node_.nvswitch || bridges;
    nvlink_gbps_ = whole ? all : pair * static_cast<float>(node_.gpus - 1);
    for (std::uint32_t a = 0; a < node_.gpus; ++a) {
      for (std::uint32_t b = 0; b < node_.gpus; ++b) {
        if (a == b || !direct || (bridges && a / 2 != b / 2)) continue;
        node_.between[a][b] = node_.nvswitch ? SearchPath{{out[a], in[b]}, Path::Nvl, all}
                                             : SearchPath{{link(pair)}, Path::Nvl, pair};
      }
    }
  }

  /// Each NIC hangs at a PCIe switch with its GPU; the other GPUs reach it through that GPU where
  /// NVLink allows (PXN), else through the CPU.
  void add_nics() {
    const float nic = std::min(topology_.nic_gbps, topology_.pci_gbps);
    node_.nic_budget.assign(node_.nics, topology_.nic_gbps);
    node_.to_nic.assign(node_.gpus, std::vector<SearchPath>(node_.nics));
    node_.from_nic.assign(node_.nics, std::vector<SearchPath>(node_.gpus));
    for (std::uint32_t n = 0; n < node_.nics; ++n) {
      const std::uint32_t home = node_.local_gpu(n);
      for (std::uint32_t g = 0; g < node_.gpus; ++g) {
        const bool near = g == home || nearest_nic(g) == n;
        if (near) {
          node_.to_nic[g][n] = {{up_[g], nic_down_[n]}, topology_.nic_path, nic};
          node_.from_nic[n][g] = {{nic_up_[n], down_[g]}, topology_.nic_path, nic};
          continue;
        }
        const std::uint32_t from = socket_of(g);
        const std::uint32_t to = socket_of(home);
        node_.from_nic[n][g] = host_path(nic_up_[n], down_[g], to, from);
        node_.to_nic[g][n] = host_path(up_[g], nic_down_[n], from, to);
        if (node_.from_nic[n][g].type == Path::Pxb) node_.from_nic[n][g].type = Path::Phb;
        const SearchPath& nvlink = node_.between[g][home];
        // nccl src/graph/paths.cc: PXN only where the other GPU reaches its NIC below a switch.
        if (nvlink.type == Path::Nvl && topology_.nic_path <= Path::Pxb) {
          SearchPath pxn{nvlink.links, Path::Pxn, std::min(nvlink.gbps, nic)};
          pxn.links.push_back(up_[home]);
          pxn.links.push_back(nic_down_[n]);
          node_.to_nic[g][n] = std::move(pxn);
        }
      }
    }
  }

  std::uint32_t nearest_nic(std::uint32_t gpu) const { return gpu * node_.nics / node_.gpus; }

  /// nccl src/graph/search.cc, ncclTopoSearchInit.
  void sum_up() {
    const auto widest = [this](const std::vector<std::vector<SearchPath>>& paths) {
      for (const auto& row : paths) {
        for (const SearchPath& path : row) node_.max_gbps = std::max(node_.max_gbps, path.gbps);
      }
    };
    widest(node_.nics > 0 ? node_.to_nic : node_.between);
    node_.total_gbps = std::max(topology_.pci_gbps, nvlink_gbps_);
    if (node_.nics == 0 && node_.gpus == 1) node_.max_gbps = node_.total_gbps = 5000;
  }

  const Topology& topology_;
  const Settings& settings_;
  SearchNode node_;
  Ids up_, down_, nic_up_, nic_down_;
  std::vector<Ids> socket_links_;
  float nvlink_gbps_ = 0;
};

}  // namespace

SearchNode search_node(const Topology& topology, const Settings& settings) {
  return Builder{topology, settings}.build();
}

}  // namespace foretrace::nccl
