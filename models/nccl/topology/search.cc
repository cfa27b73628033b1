// The way NCCL's search (nccl src/graph/search.cc, ncclTopoCompute) goes through speeds and
// relaxations until nothing better can be found.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "models/nccl/topology/channel_search.h"

namespace foretrace::nccl {
namespace {

constexpr std::uint32_t kMaxNvlsHeads = 32;
constexpr int kSteps = 1 << 14;
constexpr int kSameSteps = 1 << 8;
constexpr std::int64_t kAllSteps = 1 << 19;

// src/graph/search.cc: GB/s per channel, tried from the left.
constexpr std::array kWithin{40.F, 30.F, 20.F, 18.F, 15.F, 12.F, 10.F,
                             9.F,  7.F,  6.F,  5.F,  4.F,  3.F};
constexpr std::array kBetween{48.F, 30.F, 28.F, 24.F, 20.F, 18.F, 15.F, 12.F,  10.F, 9.F,
                              7.F,  6.F,  5.F,  4.F,  3.F,  2.4F, 1.2F, 0.24F, 0.12F};
constexpr std::array kWithinHopper{60.F, 50.F, 40.F, 30.F, 24.F, 20.F, 15.F, 12.F, 11.F, 6.F, 3.F};
constexpr std::array kBetweenHopper{48.F, 45.F, 42.F, 40.F, 30.F, 24.F, 22.F,  20.F, 17.5F,
                                    15.F, 12.F, 6.F,  3.F,  2.4F, 1.2F, 0.24F, 0.12F};

Path next(Path path) { return static_cast<Path>(index_of(path) + 1); }

class GraphSearch {
 public:
  GraphSearch(const Topology& topology, const Constants& constants, const Settings& settings)
      : topology_{topology}, node_{search_node(topology, settings)} {
    const std::uint32_t capability = topology.capability;
    const bool inter = node_.nics > 0;
    if (capability >= 100) {
      speeds_ = inter ? constants.speeds_between_blackwell : constants.speeds_within_blackwell;
    } else if (capability >= 90) {
      speeds_ = inter ? std::span<const float>{kBetweenHopper} : std::span{kWithinHopper};
    } else {
      speeds_ = inter ? std::span<const float>{kBetween} : std::span{kWithin};
    }
    measure_paths();
  }

  SearchGraph find(Pattern pattern, std::uint32_t min_channels, std::uint32_t max_channels) {
    best_ = {};
    best_.graph.pattern = pattern;
    best_.graph.channels = 0;
    best_.graph.same_channels = pattern != Pattern::Nvls;
    best_.graph.intra_path = shortest_intra_;
    best_.graph.inter_path = shortest_inter_;
    best_.min_channels = min_channels;
    best_.max_channels = max_channels;
    if (pattern == Pattern::Nvls) {
      if (!node_.nvswitch || topology_.capability < 90) return best_.graph;
      best_.max_channels = std::min(kMaxNvlsHeads, node_.gpus);
      if (node_.nics == 0) best_.min_channels = best_.max_channels;
    }
    if (node_.gpus == 1 && pattern != Pattern::Ring) best_.graph.pattern = Pattern::Tree;
    pattern_ = best_.graph.pattern;
    relax();
    duplicate();
    speed_up();
    if (best_.graph.channels == 0 && pattern != Pattern::Nvls) fall_back();
    best_.graph.nic_latency_us = node_.nics > 0 ? topology_.nic_latency_us : 0;
    return best_.graph;
  }

  /// A graph that was read off a log.
  SearchGraph known(const Rings& rings) const {
    SearchGraph graph;
    graph.channels = rings.channels;
    graph.intra_gbps = graph.inter_gbps = rings.gbps;
    graph.intra_path = shortest_intra_;
    graph.inter_path = shortest_inter_;
    graph.nic_latency_us = node_.nics > 0 ? topology_.nic_latency_us : 0;
    return graph;
  }

  void describe_longest(Graphs& graphs) const {
    for (const auto& row : node_.between) {
      for (const SearchPath& path : row) {
        if (path.type == Path::Dis || path.type < graphs.gpu_path) continue;
        graphs.gpu_path = path.type;
        graphs.gpu_gbps = path.gbps;
      }
    }
  }

 private:
  void measure_paths() {
    shortest_intra_ = Path::Loc;
    longest_intra_ = Path::Sys;
    if (node_.gpus > 1) {
      shortest_intra_ = Path::Sys;
      longest_intra_ = Path::Loc;
      for (std::uint32_t a = 0; a < node_.gpus; ++a) {
        for (std::uint32_t b = 0; b < node_.gpus; ++b) {
          if (a == b) continue;
          shortest_intra_ = std::min(shortest_intra_, node_.between[a][b].type);
          longest_intra_ = std::max(longest_intra_, node_.between[a][b].type);
        }
      }
    }
    if (node_.nics == 0) return;
    shortest_inter_ = Path::Sys;
    longest_inter_ = Path::Loc;
    for (const auto& row : node_.to_nic) {
      for (const SearchPath& path : row) {
        shortest_inter_ = std::min(shortest_inter_, path.type);
        longest_inter_ = std::max(longest_inter_, path.type);
      }
    }
  }

  /// One search with `wanted_`; the steps left.
  int search() {
    int steps = kSteps;
    if (wanted_.graph.same_channels) steps = kSameSteps;
    all_steps_ -= steps;
    return ChannelSearch{node_, wanted_, best_, steps}.run();
  }

  bool perfect(int left) const {
    const SearchGraph& found = best_.graph;
    return left == -1 || static_cast<float>(found.channels) * found.inter_gbps >= node_.total_gbps;
  }

  std::size_t first_speed() const {
    float total = node_.total_gbps;
    if (node_.gpus > 1 && pattern_ != Pattern::Ring) {
      total *= static_cast<float>(node_.gpus * 1.0 / (node_.gpus - 1));
    }
    std::size_t index = 0;
    const auto too_fast = [&] {
      return speeds_[index] > node_.max_gbps ||
             speeds_[index] * static_cast<float>(best_.min_channels) > total;
    };
    while (index + 1 < speeds_.size() && too_fast()) ++index;
    return index;
  }

  void want_speed(std::size_t index) {
    wanted_.graph.intra_gbps = wanted_.graph.inter_gbps = speeds_[index];
  }

  /// From the fastest channels on: other orders, a simpler tree, longer paths, other NICs, and only
  /// then a lower speed.
  void relax() {
    wanted_ = best_;
    all_steps_ = kAllSteps;
    const bool any_nic = node_.nics > 1 && pattern_ != Pattern::Tree && pattern_ != Pattern::Nvls;
    const bool same = best_.graph.same_channels;
    std::size_t speed = first_speed();
    want_speed(speed);
    while (true) {
      const int left = search();
      if (perfect(left)) return;
      SearchGraph& wanted = wanted_.graph;
      const bool amd = topology_.cpu == Cpu::Amd && wanted.intra_path == Path::Sys;
      if (wanted.same_channels && !amd) {
        wanted.same_channels = false;
        continue;
      }
      wanted.same_channels = same;
      all_steps_ += left;
      const SearchGraph& found = best_.graph;
      if (all_steps_ < 0 && found.channels > 0) return;
      if (topology_.capability >= 90 && wanted.pattern == Pattern::BalancedTree) {
        wanted.pattern = Pattern::Tree;
        continue;
      }
      wanted.pattern = found.pattern;
      if (longer_path() || (any_nic && other_nics())) continue;
      wanted_.cross_nic = 0;
      const bool worth = found.channels == 0 || (speed + 1 < speeds_.size() &&
                                                 speeds_[speed + 1] / found.inter_gbps > .49);
      if (speed + 1 >= speeds_.size() || !worth) return;
      want_speed(++speed);
    }
  }

  bool longer_path() {
    SearchGraph& wanted = wanted_.graph;
    const SearchGraph& found = best_.graph;
    const Path longest = node_.nics > 0 ? wanted.inter_path : longest_intra_;
    if (wanted.intra_path < longest &&
        (found.channels == 0 || wanted.intra_path < found.intra_path)) {
      wanted.intra_path = next(wanted.intra_path);
      return true;
    }
    wanted.intra_path = shortest_intra_;
    if (node_.nics > 0 && wanted.inter_path < longest_inter_ &&
        (found.channels == 0 || wanted.inter_path < found.inter_path ||
         wanted.inter_path < Path::Pxn)) {
      wanted.inter_path = next(wanted.inter_path);
      return true;
    }
    wanted.inter_path = shortest_inter_;
    return false;
  }

  bool other_nics() {
    const Pattern pattern = best_.graph.pattern;
    if (wanted_.cross_nic != 0) return false;
    if (pattern != Pattern::Ring && pattern != Pattern::BalancedTree) return false;
    wanted_.cross_nic = 2;
    return true;
  }

  /// Fast channels are split in two, so that two CTAs share the work.
  void duplicate() {
    SearchGraph& found = best_.graph;
    if (found.channels == 0 || found.pattern == Pattern::Nvls || found.intra_gbps < 25) return;
    if (topology_.capability > 80 && found.intra_gbps < 50 && found.channels > 4) return;
    const std::uint32_t channels = std::min(2 * found.channels, best_.max_channels);
    const auto parts = static_cast<float>((channels + found.channels - 1) / found.channels);
    found.intra_gbps /= parts;
    found.inter_gbps /= parts;
    for (std::uint32_t c = found.channels; c < channels && c < best_.orders.size(); ++c) {
      best_.orders[c] = best_.orders[c - found.channels];
    }
    found.channels = channels;
  }

  /// With at least as many channels: is a higher speed possible?
  void speed_up() {
    wanted_ = best_;
    std::size_t speed = 0;
    while (speeds_[speed] > best_.graph.inter_gbps && speed + 1 < speeds_.size()) ++speed;
    want_speed(speed);
    wanted_.min_channels = best_.graph.channels;
    int left = -1;
    while (left != 0 && speed > 0) {
      SearchGraph& wanted = wanted_.graph;
      const SearchGraph& found = best_.graph;
      if (found.pattern == Pattern::Ring) {
        want_speed(--speed);
      } else if (found.pattern == Pattern::Nvls && wanted.inter_gbps == found.inter_gbps &&
                 wanted.inter_gbps < wanted.intra_gbps * 2) {
        wanted_.min_channels = wanted_.max_channels = found.channels;
        wanted.inter_gbps = speeds_[--speed];
      } else if (wanted.intra_gbps == found.intra_gbps &&
                 wanted.intra_gbps < wanted.inter_gbps * 2) {
        wanted.intra_gbps = speeds_[--speed];
      } else {
        return;
      }
      left = search();
      if (perfect(left)) left = -1;
    }
  }

  void fall_back() {
    best_.graph.channels = 1;
    best_.graph.intra_gbps = best_.graph.inter_gbps = 0.1F;
    best_.graph.intra_path = best_.graph.inter_path = Path::Sys;
  }

  const Topology& topology_;
  SearchNode node_;
  std::span<const float> speeds_;
  Path shortest_intra_ = Path::Loc;
  Path longest_intra_ = Path::Sys;
  Path shortest_inter_ = Path::Pix;
  Path longest_inter_ = Path::Sys;
  Pattern pattern_ = Pattern::Ring;
  SearchState best_, wanted_;
  std::int64_t all_steps_ = kAllSteps;
};

/// All that a search depends on.
struct Asked {
  Topology topology;
  const Constants* constants;
  Settings settings;
  std::optional<Rings> rings;
  bool operator==(const Asked&) const = default;
};

std::atomic<std::size_t> searches = 0;

Graphs search_anew(const Topology& topology, const Constants& constants, const Settings& settings,
                   std::optional<Rings> rings) {
  ++searches;
  GraphSearch search{topology, constants, settings};
  Graphs graphs;
  if (rings) {
    graphs.ring = graphs.tree = search.known(*rings);
    graphs.tree.pattern = Pattern::BalancedTree;
  } else {
    graphs.ring = search.find(Pattern::Ring, 1, kMaxChannels / 2);
    graphs.tree = search.find(Pattern::BalancedTree, graphs.ring.channels, graphs.ring.channels);
  }
  graphs.nvls.pattern = Pattern::Nvls;
  const bool nvls = topology.multicast && topology.link == Link::NvSwitch &&
                    topology.gpus_per_node > 1 && settings.get(Number::NvlsEnable, 2) != 0 &&
                    settings.p2p_level() != Path::Loc;
  if (nvls) graphs.nvls = search.find(Pattern::Nvls, 1, kMaxChannels);
  search.describe_longest(graphs);
  return graphs;
}

}  // namespace

std::size_t searches_of_graphs() { return searches; }

Graphs search_graphs(const Topology& topology, const Constants& constants, const Settings& settings,
                     std::optional<Rings> rings) {
  thread_local std::vector<std::pair<Asked, Graphs>> known;
  constexpr std::size_t kMost = 256;  // a program's communicators have few kinds
  Asked asked{topology, &constants, settings, rings};
  asked.topology.nodes = std::min(topology.nodes, 2u);
  const auto found =
      std::ranges::find(known, asked, [](const auto& one) -> const Asked& { return one.first; });
  if (found != known.end()) return found->second;
  const Graphs graphs = search_anew(asked.topology, constants, settings, rings);
  if (known.size() == kMost) known.clear();
  known.emplace_back(asked, graphs);
  return graphs;
}

}  // namespace foretrace::nccl
