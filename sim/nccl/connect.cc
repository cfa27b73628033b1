// First uses of a communicator: its ranks connect, each waiting for those that are not there yet.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/nccl/nccl.h"

namespace foretrace::sim {

std::string Connection::needs() const {
  if (pairs == nullptr) {
    return fmt::format("{} needs rank{} {}, which never came", what, missing.size() == 1 ? "" : "s",
                       fmt::join(missing, ", "));
  }
  const auto first = [](const NcclConnections::Missing& one) {
    return fmt::format("the first transfer from rank {} to rank {} needs rank {}", one.pair.from,
                       one.pair.to, one.rank);
  };
  const NcclConnections::Missing next = pairs->missing(setup);
  const auto last = pairs->first_missing(setup);
  if (!next.has_come || !last) return first(next) + ", which never came";
  return fmt::format("{}, which connects with all that it sends to and receives from at once: {}, "
                     "which never came",
                     first(next), first(*last));
}

Connection* NcclComm::arrive(Connection& connection, std::uint32_t rank, Duration cost) {
  const auto at = std::ranges::find(connection.missing, rank);
  if (at == connection.missing.end()) {
    return connection.made() && connection.ready <= engine_.now() ? nullptr : &connection;
  }
  connection.missing.erase(at);
  if (connection.made()) {
    connection.ready = engine_.now() + cost;
    for (Waiter* waiter : std::exchange(connection.waiters, {})) waiter->wake();
  }
  return &connection;
}

Connection* NcclComm::connect_collectives(std::uint32_t rank) {
  if (warm_) return nullptr;
  return arrive(collectives_connection_, rank, machine_.time(Param::NcclConnect));
}

Connection* NcclComm::connect_pairs(std::uint32_t rank,
                                    const std::vector<NcclConnections::Pair>& pairs) {
  if (warm_) return nullptr;
  const std::optional<std::uint32_t> setup = pairs_.connect(rank, pairs);
  if (!setup) return nullptr;
  pair_connections_.push_back({.pairs = &pairs_, .setup = *setup});
  const bool has_own = machine_.has(Param::NcclConnectPeer);
  const Duration cost = machine_.time(has_own ? Param::NcclConnectPeer : Param::NcclConnect);
  for (const std::uint32_t done : pairs_.take_done()) {
    Connection& made = pair_connections_[done];
    made.ready = engine_.now() + cost;
    for (Waiter* waiter : std::exchange(made.waiters, {})) waiter->wake();
  }
  return &pair_connections_.back();
}

Connection* NcclComm::initialize(std::uint32_t rank) {
  return arrive(initialization_, rank, machine_.time(Param::NcclInit));
}

}  // namespace foretrace::sim
