// How the entries of an order graph come to their ends: signals taken, transfers met.
#include <algorithm>
#include <utility>

#include "scenarios/check/order_graph.h"

namespace foretrace {

/// Not a recursion: a stream may hold thousands of entries that end with one signal.
void OrderGraph::settle() {
  while (!ready_.empty()) {
    const std::uint32_t node = ready_.back();
    ready_.pop_back();
    if (is_late_ && !open_.at(node).entry.takes.empty()) {
      late_.push_back(node);
    } else {
      begin(node);
    }
  }
}

bool OrderGraph::begin_late() {
  if (late_.empty()) return false;
  begin(late_.front());
  late_.pop_front();
  settle();
  return true;
}

void OrderGraph::begin(std::uint32_t node) {
  Open& open = open_.at(node);
  if (!open.has_begun) {
    if (!takes_all(node, open)) return;
    open.has_begun = true;
    for (const std::uint32_t semaphore : open.entry.gives) {
      hand_over(semaphore, result_.nodes[node].lane, result_.before[node]);
    }
    if (waits_inside(node, open)) return;
  }
  if (open.kernels_left == 0) {
    end(node);
  } else {
    begin_kernels(node, open);
  }
}

bool OrderGraph::takes_all(std::uint32_t node, Open& open) {
  for (; open.taken < open.entry.takes.size(); ++open.taken) {
    const std::uint32_t semaphore = open.entry.takes[open.taken];
    if (!can_take(semaphore)) {
      semaphores_[semaphore].waiting.push_back(node);
      return false;
    }
    take(semaphore, result_.nodes[node].lane, result_.before[node]);
  }
  return true;
}

/// It has begun, and ends after these.
bool OrderGraph::waits_inside(std::uint32_t node, Open& open) {
  for (const std::uint32_t before : open.entry.after_inside) {
    if (result_.nodes[before].ended) {
      join_end_of(before, met_[node]);
    } else {
      open_.at(before).followers.push_back(node);
      ++open.pending;
    }
  }
  return open.pending > 0;
}

/// Those that follow no other; each end lets the next begin.
void OrderGraph::begin_kernels(std::uint32_t node, const Open& open) {
  for (std::uint32_t k = 0; k < open.kernels.size(); ++k) {
    if (open.kernels[k].to_end == 0) beginning_.emplace_back(node, k);
  }
  while (!beginning_.empty()) {
    const auto [entry, kernel] = beginning_.back();
    beginning_.pop_back();
    meet(entry, kernel);
  }
}

void OrderGraph::meet(std::uint32_t node, std::uint32_t kernel) {
  Open& open = open_.at(node);
  const auto parts = std::move(open.entry.kernels[kernel].parts);
  for (const auto& [transfer, rank] : parts) open.meets.push_back(transfer);
  for (const auto& [transfer, rank] : parts) {
    join(transfer->clock, result_.before[node]);
    if (rank == transfer->source) join(transfer->source_clock, result_.before[node]);
    --transfer->missing;
    const std::size_t mine = begin_party(*transfer, node, kernel);
    transfer->waiting.push_back(mine);
    transfer->source_has_begun = transfer->source_has_begun || rank == transfer->source;
    if (transfer->is_broken || (transfer->missing > 0 && !transfer->is_held)) continue;
    if (transfer->missing == 0 || rank == transfer->source) {  // others may have waited for that
      std::vector<std::size_t> waiting = std::exchange(transfer->waiting, {});
      std::ranges::sort(waiting);
      for (const std::size_t party : waiting) meet_others(*transfer, party);
    } else {
      transfer->waiting.pop_back();
      meet_others(*transfer, mine);
    }
  }
}

/// Parties begin in about the order in which they came: each is looked for behind the last one.
std::size_t OrderGraph::begin_party(OrderTransfer& transfer, std::uint32_t node,
                                    std::uint32_t kernel) {
  const auto& parties = transfer.parties;
  const auto is_mine = [&](const OrderTransfer::Party& party) {
    return party.entry == node && party.kernel == kernel && !party.has_begun;
  };
  const auto next = parties.begin() + static_cast<std::ptrdiff_t>(transfer.next);
  auto mine = std::find_if(next, parties.end(), is_mine);
  if (mine == parties.end()) mine = std::find_if(parties.begin(), next, is_mine);
  const auto index = static_cast<std::size_t>(mine - parties.begin());
  transfer.parties[index].has_begun = true;
  transfer.next = index + 1;
  return index;
}

void OrderGraph::meet_others(OrderTransfer& transfer, std::size_t index) {
  OrderTransfer::Party& party = transfer.parties[index];
  if (!has_met(transfer, party)) {
    transfer.waiting.push_back(index);
    return;
  }
  party.has_met = true;
  hear(transfer, party);
  if (--open_.at(party.entry).kernels[party.kernel].to_meet == 0) {
    end_kernel(party.entry, party.kernel);
  }
}

void OrderGraph::end_kernel(std::uint32_t node, std::uint32_t kernel) {
  Open& open = open_.at(node);
  if (--open.kernels_left == 0) {
    end(node);
    return;
  }
  for (std::uint32_t k = 0; k < open.kernels.size(); ++k) {
    const auto& after = open.entry.kernels[k].after;
    if (std::ranges::count(after, kernel) == 0) continue;
    if (--open.kernels[k].to_end == 0) beginning_.emplace_back(node, k);
  }
}

/// Whoever has begun, when all have; where its buffers hold what is sent, as soon as it has sent or
/// what it receives is there.
bool OrderGraph::has_met(const OrderTransfer& transfer, const OrderTransfer::Party& party) {
  if (!party.has_begun) return false;
  if (transfer.missing == 0) return true;
  if (transfer.sink) return party.rank != *transfer.sink;
  return transfer.source_has_begun;
}

/// The party's end says that those have begun whose data it received.
void OrderGraph::hear(const OrderTransfer& transfer, const OrderTransfer::Party& party) {
  const bool from_all = (!transfer.source && !transfer.sink) || party.rank == transfer.sink;
  if (mode_ == OrderMode::Likely || from_all) {
    join(met_[party.entry], transfer.clock);
  } else if (transfer.source && party.rank != transfer.source) {
    join(met_[party.entry], transfer.source_clock);
  }
}

void OrderGraph::end(std::uint32_t node) {
  result_.nodes[node].ended = true;
  result_.sequence.push_back(node);
  const std::vector<std::uint32_t> followers = std::move(open_.at(node).followers);
  open_.erase(node);
  --open_entries_;
  for (const std::uint32_t follower : followers) {
    Open& open = open_.at(follower);
    join_end_of(node, open.has_begun ? met_[follower] : result_.before[follower]);
    if (--open.pending == 0) ready_.push_back(follower);
  }
}

void OrderGraph::join_end_of(std::uint32_t node, OrderClock& into) const {
  join(into, result_.before[node]);
  if (const auto met = met_.find(node); met != met_.end()) join(into, met->second);
  const OrderNode& ended = result_.nodes[node];
  into.raise(ended.lane, ended.position);
}

void OrderGraph::join(OrderClock& into, const OrderClock& from) const {
  const OrderClock::Work work = into.join(from);
  joined_entries_ += work.joined;
  made_entries_ += work.made;
}

}  // namespace foretrace
