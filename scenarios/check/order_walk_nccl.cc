// NCCL's calls: one entry for each communicator and device of a group, and who meets whom.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/check/order_walk.h"
#include "scenarios/program/op_facts.h"

namespace foretrace {

const CommHandle& OrderWalk::handle_of(const NcclCall& call) const {
  return program_.comms[nccl_comm(call.executed.op->kind)->resolve(call.variables).value];
}

std::uint32_t OrderWalk::rank_of(const CommHandle& handle, std::uint32_t process) const {
  const auto& members = program_.communicators[handle.communicator].members;
  const auto at = std::ranges::find(members, RankPlace{process, handle.device});
  return static_cast<std::uint32_t>(at - members.begin());
}

/// Inside a group or a capture the call is only noted.
void OrderWalk::nccl_call(Thread& thread) {
  thread.nccl.push_back({thread.current, thread.variables});
  if (thread.group_depth == 0 && !thread.capture) nccl_issue(thread);
}

/// One kernel for each communicator and device, on the stream of the first call.
void OrderWalk::nccl_issue(Thread& thread) {
  struct Launch {
    CommState* comm;
    std::uint32_t rank;
    std::uint32_t stream;
    OrderEntry entry;
  };
  std::vector<Launch> launches;
  for (const NcclCall& call : std::exchange(thread.nccl, {})) {
    const CommHandle& handle = handle_of(call);
    CommState& comm = comms_[handle.communicator];
    const std::uint32_t rank = rank_of(handle, thread.process);
    auto at = std::ranges::find_if(
        launches, [&](const Launch& l) { return l.comm == &comm && l.rank == rank; });
    if (at == launches.end()) {
      const StreamRef* stream = op_facts(call.executed.op->kind).stream;
      launches.push_back({&comm, rank, stream->resolve(call.variables).value, {}});
      at = launches.end() - 1;
      follow_last(thread, comm.launches[rank], at->entry);
    }
    at->entry.work.push_back(call.executed);
    at->entry.parts.push_back(join_transfer(call, comm, rank));
  }
  for (Launch& launch : launches) {
    const std::uint32_t entry = queue(thread, launch.stream, std::move(launch.entry));
    launch.comm->launches[launch.rank].push_back(entry);
  }
}

/// The latest that is called before this thread's call for certain.
void OrderWalk::follow_last(const Thread& thread, const std::vector<std::uint32_t>& launches,
                            OrderEntry& entry) const {
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
    if (graph_.last_known({*launch}, thread.call, thread.clock) == OrderGraph::kNone) continue;
    entry.after.push_back(*launch);
    return;
  }
}

bool OrderWalk::holds(Bytes sent) const {
  return options_.buffers_hold_sends && sent.count <= kMostOnTheWay;
}

OrderPart OrderWalk::join_collective(const NcclCall& call, CommState& comm, std::uint32_t rank) {
  const auto& op = std::get<NcclCollective>(call.executed.op->kind);
  const auto root = static_cast<std::uint32_t>(op.root.eval(call.variables));
  std::string what = fmt::format("{} {} {}", kind_name(call.executed.op->kind),
                                 op.size.eval(call.variables).count, root);
  const std::uint64_t number = comm.next[rank]++;
  if (number < comm.collectives.size()) {
    const auto& transfer = comm.collectives[number];
    if (transfer->what != what) transfer->is_broken = true;
    return {transfer, rank};
  }
  auto transfer = std::make_shared<OrderTransfer>();
  transfer->what = std::move(what);
  transfer->missing = comm.next.size();
  if (op.kind == CollectiveKind::Broadcast || op.kind == CollectiveKind::Scatter) {
    transfer->source = root;
  }
  if (op.kind == CollectiveKind::Reduce || op.kind == CollectiveKind::Gather) {
    transfer->sink = root;
  }
  transfer->is_held = (transfer->source || transfer->sink) && holds(op.size.eval(call.variables));
  return {comm.collectives.emplace_back(std::move(transfer)), rank};
}

OrderPart OrderWalk::join_transfer(const NcclCall& call, CommState& comm, std::uint32_t rank) {
  const Variables v = call.variables;
  const auto* send = std::get_if<NcclSend>(&call.executed.op->kind);
  const auto* recv = std::get_if<NcclRecv>(&call.executed.op->kind);
  if (send == nullptr && recv == nullptr) return join_collective(call, comm, rank);
  const bool sends = send != nullptr;
  const auto peer = static_cast<std::uint32_t>((sends ? send->peer : recv->peer).eval(v));
  const Bytes size = (sends ? send->size : recv->size).eval(v);
  PairQueue& pair = comm.pairs[sends ? std::pair{rank, peer} : std::pair{peer, rank}];
  auto& mine = sends ? pair.sends : pair.recvs;
  auto& theirs = sends ? pair.recvs : pair.sends;
  if (theirs.empty()) {
    auto transfer = std::make_shared<OrderTransfer>();
    transfer->what = fmt::format("{}", size.count);
    transfer->missing = 2;
    transfer->source = sends ? rank : peer;
    transfer->is_held = holds(size);
    return {mine.emplace_back(std::move(transfer)), rank};
  }
  auto transfer = theirs.front();
  theirs.pop_front();
  if (transfer->what != fmt::format("{}", size.count)) transfer->is_broken = true;
  return {std::move(transfer), rank};
}

}  // namespace foretrace
