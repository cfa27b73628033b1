#include "models/nccl/topology/channel_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace foretrace::nccl {
namespace {

constexpr int kNumberedSteps = 1 << 10;  // nccl: what the numbered order may cost between nodes

/// nccl src/graph/search.cc, SUB_ROUND: budgets are kept to a thousandth.
/// As std::round, which is a call into the mathematics library.
void subtract(float& budget, float gbps) {
  const float thousandths = (budget - gbps) * 1000;
  if (std::abs(thousandths) >= 1 << 23) {  // whole as it is
    budget = thousandths / 1000;
    return;
  }
  auto whole = static_cast<std::int32_t>(thousandths);
  const float rest = thousandths - static_cast<float>(whole);
  if (rest >= 0.5F) ++whole;
  if (rest <= -0.5F) --whole;
  budget = static_cast<float>(whole) / 1000;
}

}  // namespace

int ChannelSearch::run() {
  at_.graph.channels = 0;
  at_.hops = 0;
  at_.orders.assign(at_.max_channels, std::vector<std::uint32_t>(node_.gpus));
  at_.in_nics.assign(at_.max_channels, 0);
  at_.out_nics.assign(at_.max_channels, 0);
  used_.assign(at_.max_channels, std::vector<bool>(node_.gpus));
  all_nics_ = nics_near(0, node_.gpus);
  own_nics_.clear();
  for (std::uint32_t gpu = 0; gpu < node_.gpus; ++gpu) {
    own_nics_.push_back(nics_near(gpu, gpu + 1));
  }
  next_channel();
  return steps_;
}

bool ChannelSearch::take(const SearchPath& path, float gbps, Path longest, bool from_gpu) {
  if (path.type >= Path::Dis || path.type > longest) return false;
  const bool costs_more = node_.intel && from_gpu && path.type == Path::Phb;
  std::size_t taken = 0;
  for (; taken < path.links.size(); ++taken) {
    const std::uint32_t link = path.links[taken];
    const float needed = costs_more && link < node_.pci_links ? gbps * 6 / 5 : gbps;
    if (node_.budget[link] < needed) break;
    subtract(node_.budget[link], needed);
  }
  if (taken == path.links.size()) {
    at_.hops += static_cast<int>(taken);
    return true;
  }
  while (taken-- > 0) {
    const std::uint32_t link = path.links[taken];
    subtract(node_.budget[link], -(costs_more && link < node_.pci_links ? gbps * 6 / 5 : gbps));
  }
  return false;
}

void ChannelSearch::give_back(const SearchPath& path, float gbps, bool from_gpu) {
  const bool costs_more = node_.intel && from_gpu && path.type == Path::Phb;
  for (const std::uint32_t link : path.links) {
    subtract(node_.budget[link], -(costs_more && link < node_.pci_links ? gbps * 6 / 5 : gbps));
  }
  at_.hops -= static_cast<int>(path.links.size());
}

/// Channels are tried in the numbered order first, then as the one before, then freely.
void ChannelSearch::next_channel() {
  const int last = static_cast<int>(node_.gpus) - 1;
  const bool ring = at_.graph.pattern == Pattern::Ring;
  if (node_.nics > 0) {
    const int split = at_.graph.pattern == Pattern::SplitTree ? 1 : 0;
    next_channel_between_nodes({ring ? last : split, kNever});
    return;
  }
  const Turns turns{kNever, ring ? last : kNever};
  if (at_.graph.pattern == Pattern::Nvls) {
    try_first(at_.graph.channels, turns, Order::Free);
    return;
  }
  if (channel() == 0) {
    try_first(0, turns, Order::Numbered);
  } else {
    try_first(at_.orders[channel() - 1][0], turns, Order::AsBefore);
  }
  if (at_.graph.same_channels && channel() > 0) return;
  for (std::uint32_t gpu = 0; gpu < node_.gpus; ++gpu) try_first(gpu, turns, Order::Free);
}

/// All NICs, those nearest to one of the GPUs from `first` to before `end` first.
std::vector<std::uint32_t> ChannelSearch::nics_near(std::uint32_t first, std::uint32_t end) const {
  std::vector<std::uint32_t> nics;
  nics.reserve(node_.nics);
  const auto add = [&](std::uint32_t g, Path longest) {
    for (std::uint32_t n = 0; n < node_.nics; ++n) {
      if (node_.to_nic[g][n].type > longest) continue;
      if (std::ranges::find(nics, n) == nics.end()) nics.push_back(n);
    }
  };
  for (std::size_t type = 0; type <= index_of(at_.graph.inter_path); ++type) {
    if (nics.size() == node_.nics) break;
    for (std::uint32_t g = first; g < end; ++g) add(g, static_cast<Path>(type));
  }
  return nics;
}

void ChannelSearch::next_channel_between_nodes(Turns turns) {
  // NCCL counts a NIC's bandwidth in whole GB/s.
  const auto whole = static_cast<float>(static_cast<int>(at_.graph.inter_gbps));
  const std::vector<std::uint32_t>& nics = all_nics_;
  const bool nvls = at_.graph.pattern == Pattern::Nvls;
  const bool pairs = at_.graph.pattern == Pattern::Ring && at_.cross_nic == 2 && channel() % 2 == 1;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const std::uint32_t nic = nics[(channel() + i) % nics.size()];
    if (node_.nic_budget[nic] < whole) continue;
    if (pairs && nic != at_.out_nics[channel() - 1]) continue;
    const auto is_head = [&](const auto& order) { return order[0] == node_.local_gpu(nic); };
    const auto laid = at_.orders.begin() + at_.graph.channels;
    if (nvls && (channel() >= nics.size() || std::any_of(at_.orders.begin(), laid, is_head))) {
      continue;
    }
    at_.in_nics[channel()] = nic;
    node_.nic_budget[nic] -= whole;
    from_nic(nic, turns);
    node_.nic_budget[nic] += whole;
    if (nvls) break;  // a head is its NIC's own GPU
  }
}

void ChannelSearch::from_nic(std::uint32_t nic, Turns turns) {
  const auto enter = [&](std::uint32_t gpu, Order order) {
    const SearchPath& path = node_.from_nic[nic][gpu];
    if (!take(path, at_.graph.inter_gbps, at_.graph.inter_path, false)) return;
    try_first(gpu, turns, order);
    give_back(path, at_.graph.inter_gbps, false);
  };
  if (at_.graph.pattern == Pattern::Nvls) {
    enter(node_.local_gpu(nic), Order::Free);
    return;
  }
  if (channel() > 0 && at_.graph.same_channels) {
    enter(at_.orders[channel() - 1][0], Order::AsBefore);
    return;
  }
  if (channel() == 0 && !node_.nvswitch) {
    const int kept = steps_;
    steps_ = kNumberedSteps;
    enter(0, Order::Numbered);
    steps_ = steps_ == -1 ? -1 : kept;
  }
  const std::uint32_t home = node_.local_gpu(nic);
  enter(home, Order::Free);
  for (std::uint32_t gpu = 0; gpu < node_.gpus; ++gpu) {
    if (gpu != home && node_.from_nic[nic][gpu].type == Path::Pix) enter(gpu, Order::Free);
  }
}

void ChannelSearch::try_first(std::uint32_t gpu, Turns turns, Order order) {
  used_[channel()][gpu] = true;
  visit(gpu, 0, turns, order);
  used_[channel()][gpu] = false;
}

void ChannelSearch::try_next(std::uint32_t from, std::uint32_t gpu, std::size_t step, Turns turns,
                             Order order) {
  const SearchPath& path = node_.between[from][gpu];
  if (!take(path, at_.graph.intra_gbps, at_.graph.intra_path, true)) return;
  const std::size_t mine = channel();
  const bool was = used_[mine][gpu];
  used_[mine][gpu] = !was;
  visit(gpu, step, turns, order);
  used_[mine][gpu] = was;
  give_back(path, at_.graph.intra_gbps, true);
}

void ChannelSearch::channel_done() {
  ++at_.graph.channels;
  if (better()) {
    best_ = at_;
    if (at_.graph.channels == at_.max_channels) steps_ = -1;
  }
  if (at_.graph.channels < at_.max_channels) next_channel();
  --at_.graph.channels;
}

void ChannelSearch::visit(std::uint32_t gpu, std::size_t step, Turns turns, Order order) {
  if (steps_ <= 0) return;
  --steps_;
  if (step == node_.gpus) {
    channel_done();
    return;
  }
  at_.orders[channel()][step] = gpu;
  const int here = static_cast<int>(step);
  if (here == turns.to_nic) {
    back_to_nic(gpu, step, turns, order);
  } else if (at_.graph.pattern == Pattern::Nvls) {
    nvls_head(gpu);
  } else if (step + 1 < node_.gpus) {
    const auto go_on = [&](std::uint32_t to) { try_next(gpu, to, step + 1, turns, order); };
    if (order == Order::Numbered) {
      go_on(static_cast<std::uint32_t>(step + 1));
    } else if (order == Order::AsBefore) {
      go_on(at_.orders[channel() - 1][step + 1]);
    } else if (node_.nvswitch) {
      std::ranges::for_each(neighbours(gpu), go_on);
    } else {
      std::ranges::for_each(candidates(gpu, turns, step), go_on);
    }
  } else if (here == turns.to_first) {
    const std::uint32_t first = at_.orders[channel()][0];
    const SearchPath& path = node_.between[gpu][first];
    if (!take(path, at_.graph.intra_gbps, at_.graph.intra_path, true)) return;
    visit(first, step + 1, {turns.to_nic, kNever}, order);
    give_back(path, at_.graph.intra_gbps, true);
  } else {
    visit(gpu, node_.gpus, {}, order);
  }
}

bool ChannelSearch::may_return_to(std::uint32_t nic, std::size_t step) const {
  const std::uint32_t start = at_.in_nics[channel()];
  const Pattern pattern = at_.graph.pattern;
  if (pattern == Pattern::Tree && nic != start) return false;
  if (pattern == Pattern::Ring && at_.cross_nic == 2) {
    // Rings with different NICs come in pairs that swap them.
    if (channel() % 2 == 1 && nic != at_.in_nics[channel() - 1]) return false;
  } else if (at_.cross_nic == 0 && nic != start) {
    return false;
  }
  return pattern != Pattern::BalancedTree || step == 0 || nic == at_.out_nics[channel()];
}

void ChannelSearch::back_to_nic(std::uint32_t gpu, std::size_t step, Turns turns, Order order) {
  const bool balanced = at_.graph.pattern == Pattern::BalancedTree;
  // A balanced tree leaves half its traffic to each of the first two GPUs.
  const float gbps = balanced ? at_.graph.inter_gbps / 2 : at_.graph.inter_gbps;
  const int again = balanced && step == 0 ? 1 : kNever;
  for (const std::uint32_t nic : own_nics_[gpu]) {
    if (!may_return_to(nic, step)) continue;
    const SearchPath& path = node_.to_nic[gpu][nic];
    if (!take(path, gbps, at_.graph.inter_path, true)) continue;
    at_.out_nics[channel()] = nic;
    visit(gpu, step, {again, turns.to_first}, order);
    give_back(path, gbps, true);
  }
}

/// Every GPU exchanges the channel's data with the switches once, its head twice.
void ChannelSearch::nvls_head(std::uint32_t head) {
  const float gbps = at_.graph.intra_gbps;
  const auto share = [&](std::uint32_t gpu) { return gpu == head ? 2 * gbps : gbps; };
  const Path any = Path::Nvl;
  std::uint32_t down = 0;
  while (down < node_.gpus && take(node_.from_switch[down], share(down), any, false)) ++down;
  std::uint32_t up = 0;
  if (down == node_.gpus) {
    while (up < node_.gpus && take(node_.to_switch[up], share(up), any, true)) ++up;
    if (up == node_.gpus) visit(head, node_.gpus, {}, Order::Free);
  }
  while (up-- > 0) give_back(node_.to_switch[up], share(up), true);
  while (down-- > 0) give_back(node_.from_switch[down], share(down), false);
}

/// The GPUs to try next, near ones first.
std::vector<std::uint32_t> ChannelSearch::candidates(std::uint32_t gpu, Turns turns,
                                                     std::size_t step) const {
  const std::uint32_t gpus = node_.gpus;
  std::vector<std::uint32_t> next;
  for (std::uint32_t i = 1; i < gpus; ++i) {
    const std::uint32_t to = (gpu + i) % gpus;
    if (!used_[channel()][to]) next.push_back(to);
  }
  const auto& paths = node_.between[gpu];
  const auto score = [&](std::uint32_t to) {
    return std::pair{-static_cast<int>(paths[to].gbps), paths[to].links.size()};
  };
  std::ranges::stable_sort(next, {}, score);
  const bool away = turns.to_nic != kNever && turns.to_nic != static_cast<int>(step) + 1;
  if (away && !next.empty() && score(next.front()) == score(next.back())) {
    std::ranges::reverse(next);
  }
  return next;
}

/// With switches: the GPUs before and after by number.
ChannelSearch::Neighbours ChannelSearch::neighbours(std::uint32_t gpu) const {
  const std::uint32_t gpus = node_.gpus;
  const std::uint32_t after = (gpu + 1) % gpus;
  const std::uint32_t before = (gpu + gpus - 1) % gpus;
  Neighbours next;
  const auto add = [&](std::uint32_t to) {
    if (!used_[channel()][to]) next.push_back(to);
  };
  const bool ring = at_.graph.pattern == Pattern::Ring;
  // The later one of the list is tried first.
  if (ring && after != before) add(before);
  add(after);
  if (!ring && at_.graph.pattern <= Pattern::SplitTree && after != before) add(before);
  return next;
}

bool ChannelSearch::better() const {
  const SearchGraph& found = at_.graph;
  const SearchGraph& known = best_.graph;
  if (found.channels < at_.min_channels) return false;
  const auto total = [](std::uint32_t channels, float gbps) {
    return static_cast<float>(channels) * gbps;
  };
  if (found.pattern == Pattern::Nvls) {
    return (found.channels > known.channels && found.channels <= node_.gpus) ||
           total(found.channels, found.inter_gbps) > total(known.channels, known.inter_gbps);
  }
  const float mine = total(found.channels, found.intra_gbps);
  const float theirs = total(known.channels, known.intra_gbps);
  if (mine != theirs) return mine > theirs;
  return found.pattern == known.pattern && at_.cross_nic == best_.cross_nic &&
         at_.hops < best_.hops;
}

}  // namespace foretrace::nccl
