// Who an NCCL call waits for that never ends, and where that rank is instead.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "scenarios/check/order_walk.h"

namespace foretrace {

/// "rank 1 calls it in line 30, behind line 29 in its stream".
std::string OrderGraph::place_of(const OrderTransfer::Party& party) const {
  const auto line_of = [&](std::uint32_t node) {
    const OrderNode& one = result_.nodes[node];
    return (one.work_count > 0 ? result_.work[one.first_work] : one.call).op->line;
  };
  std::string text = fmt::format("rank {} calls it in line {}", party.rank, line_of(party.entry));
  const auto& lane = result_.lanes[result_.nodes[party.entry].lane].nodes;
  const auto front =
      std::ranges::find_if(lane, [&](std::uint32_t node) { return !result_.nodes[node].ended; });
  if (front != lane.end() && *front != party.entry) {
    text += fmt::format(", behind line {} in its stream", line_of(*front));
  }
  return text;
}

std::string OrderGraph::missing_in(const OrderTransfer& transfer) const {
  constexpr std::size_t kMostSaid = 8;
  std::vector<std::string> said;
  std::size_t more = 0;
  std::set<std::uint32_t> called;
  for (const OrderTransfer::Party& party : transfer.parties) {
    called.insert(party.rank);
    if (party.has_begun) continue;
    if (said.size() < kMostSaid) {
      said.push_back(place_of(party));
    } else {
      ++more;
    }
  }
  if (more > 0) said.push_back(fmt::format("{} more wait in theirs", more));
  std::vector<std::uint32_t> never;
  const auto ask = [&](std::uint32_t rank) {
    if (!called.contains(rank)) never.push_back(rank);
  };
  if (transfer.ranks == 0) {
    ask(transfer.from);
    ask(transfer.to);
  }
  for (std::uint32_t rank = 0; rank < transfer.ranks; ++rank) ask(rank);
  if (!never.empty()) {
    const std::size_t named = std::min(never.size(), kMostSaid);
    const auto end = never.begin() + static_cast<std::ptrdiff_t>(named);
    said.push_back(
        fmt::format("rank{} {}{} never call{} it", never.size() == 1 ? "" : "s",
                    fmt::join(never.begin(), end, ", "),
                    never.size() > named ? fmt::format(" and {} more", never.size() - named) : "",
                    never.size() == 1 ? "s" : ""));
  }
  return fmt::format("{}", fmt::join(said, ", "));
}

std::map<std::uint32_t, std::string> OrderGraph::missing_partners() const {
  std::map<std::uint32_t, std::string> found;
  std::map<const OrderTransfer*, std::string> said;  // each of its parties waits for the same
  for (const auto& [node, open] : open_) {
    for (const auto& transfer : open.meets) {
      if (transfer->missing == 0 || transfer->is_broken) continue;
      const auto [at, is_new] = said.try_emplace(transfer.get());
      if (is_new) at->second = missing_in(*transfer);
      if (!at->second.empty()) {
        found.emplace(node, at->second);
        break;
      }
    }
  }
  return found;
}

/// Of a host thread whose NCCL call has not connected.
void OrderWalk::note_connections(const Thread& thread,
                                 std::map<std::uint32_t, std::string>& missing) {
  if (!thread.is_calling) return;
  for (const auto& [comm, setup] : thread.setups) {
    if (comm->connections.is_done(setup)) continue;
    const auto said = [](const NcclConnections::Missing& one) {
      return fmt::format("the first transfer from rank {} to rank {} needs rank {}", one.pair.from,
                         one.pair.to, one.rank);
    };
    const NcclConnections::Missing next = comm->connections.missing(setup);
    const auto last = comm->connections.first_missing(setup);
    missing[thread.call] =
        "it connects, and " + said(next) +
        (next.has_come && last ? ", which connects with others at once: " + said(*last) : "");
    return;
  }
  if (!thread.launches.empty()) {
    const Op& next = *thread.launches.front().entry.work.front().op;
    missing[thread.call] = fmt::format(
        "CUDA_LAUNCH_BLOCKING=1: it waits for one kernel before it launches that of line {}",
        next.line);
    return;
  }
  for (const CommState* comm : thread.comms) {
    if (comm->connected == comm->has_connected.size()) continue;
    const auto absent = std::ranges::find(comm->has_connected, false);
    missing[thread.call] =
        fmt::format("it connects, and the communicator's first collective needs rank {}",
                    absent - comm->has_connected.begin());
    return;
  }
}

}  // namespace foretrace
