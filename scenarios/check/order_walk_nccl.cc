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
  const auto& ranks = comms_[handle.communicator].ranks;
  const auto at = ranks.find({process, handle.device});
  return at == ranks.end() ? static_cast<std::uint32_t>(ranks.size()) : at->second;
}

/// Inside a group the call is only noted. A collective of a communicator of one rank is a copy at
/// most, at once and in no order but its stream's (nccl's ncclLaunchOneRank).
void OrderWalk::nccl_call(Thread& thread) {
  NcclCall call{thread.current, thread.variables};
  const auto* collective = std::get_if<NcclCollective>(&call.executed.op->kind);
  if (collective != nullptr && comms_[handle_of(call).communicator].next.size() == 1) {
    const bool in_place =
        collective->send.resolve(call.variables) == collective->recv.resolve(call.variables);
    if (!in_place) queue(thread, collective->stream, {});
    return;
  }
  thread.nccl.push_back(std::move(call));
  if (thread.group_depth == 0) nccl_issue(thread);
}

void OrderWalk::nccl_issue(Thread& thread) {
  thread.nccl_stage = program_.warmup > 0 ? NcclStage::Launch : NcclStage::Pairs;
  if (thread.nccl_stage == NcclStage::Launch) make_launches(thread);
}

/// The next step of the NCCL calls under way; whether there was one.
bool OrderWalk::nccl_goes_on(Thread& thread) {
  switch (thread.nccl_stage) {
    case NcclStage::None:
      return false;
    case NcclStage::Pairs:
      connect_pairs(thread);
      thread.nccl_stage = NcclStage::Collectives;
      return true;
    case NcclStage::Collectives:
      connect_collectives(thread);
      thread.nccl_stage = NcclStage::Launch;
      make_launches(thread);
      return true;
    case NcclStage::Launch:
      launch_next(thread);
      return true;
  }
  return false;
}

/// What one rank sends and receives in a group connects together.
void OrderWalk::connect_pairs(Thread& thread) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<NcclConnections::Pair>> pairs;
  for (std::size_t i = thread.connected; i < thread.nccl.size(); ++i) {
    const NcclCall& call = thread.nccl[i];
    const auto* send = std::get_if<NcclSend>(&call.executed.op->kind);
    const auto* recv = std::get_if<NcclRecv>(&call.executed.op->kind);
    if (send == nullptr && recv == nullptr) continue;
    const CommHandle& handle = handle_of(call);
    const std::uint32_t rank = rank_of(handle, thread.process);
    const Expr& other = send != nullptr ? send->peer : recv->peer;
    const auto peer = static_cast<std::uint32_t>(other.eval(call.variables));
    pairs[{handle.communicator, rank}].push_back(
        send != nullptr ? NcclConnections::Pair{rank, peer} : NcclConnections::Pair{peer, rank});
  }
  for (const auto& [of, of_rank] : pairs) {
    CommState& comm = comms_[of.first];
    if (const auto setup = comm.connections.connect(of.second, of_rank)) {
      thread.setups.emplace_back(&comm, *setup);
    }
  }
}

void OrderWalk::connect_collectives(Thread& thread) {
  for (std::size_t i = thread.connected; i < thread.nccl.size(); ++i) {
    const NcclCall& call = thread.nccl[i];
    if (!std::holds_alternative<NcclCollective>(call.executed.op->kind)) continue;
    const CommHandle& handle = handle_of(call);
    CommState& comm = comms_[handle.communicator];
    const std::uint32_t rank = rank_of(handle, thread.process);
    if (!comm.has_connected[rank]) ++comm.connected;
    comm.has_connected[rank] = true;
    thread.comms.push_back(&comm);
  }
}

/// One kernel for each communicator and device, on the stream of the first call. What is captured
/// has only connected.
void OrderWalk::make_launches(Thread& thread) {
  const std::size_t before = thread.connected;
  thread.connected = thread.capture ? thread.nccl.size() : 0;
  if (thread.capture) {
    for (std::size_t i = before; i < thread.nccl.size(); ++i) thread.nccl[i].issued = before;
    thread.nccl_stage = NcclStage::None;
    return;
  }
  for (const NcclCall& call : std::exchange(thread.nccl, {})) {
    const CommHandle& handle = handle_of(call);
    CommState& comm = comms_[handle.communicator];
    const std::uint32_t rank = rank_of(handle, thread.process);
    auto at = std::ranges::find_if(
        thread.launches, [&](const NcclLaunch& l) { return l.comm == &comm && l.rank == rank; });
    if (at == thread.launches.end()) {
      const StreamRef* stream = op_facts(call.executed.op->kind).stream;
      thread.launches.push_back({&comm, rank, stream->resolve(call.variables).value, {}});
      at = thread.launches.end() - 1;
    }
    at->entry.work.push_back(call.executed);
    if (at->entry.kernels.empty()) at->entry.kernels.emplace_back();
    at->entry.kernels.front().parts.push_back(join_transfer(call, comm, rank));
  }
}

/// Where launches block, a thread waits for each before it launches the next.
void OrderWalk::launch_next(Thread& thread) {
  for (const std::uint32_t entry : std::exchange(thread.entries, {})) {
    graph_.join_end_of(entry, thread.clock);
    thread.ended.push_back(entry);
  }
  while (!thread.launches.empty()) {
    NcclLaunch launch = std::move(thread.launches.front());
    thread.launches.pop_front();
    if (const auto last = last_before(thread, launch.comm->launches[launch.rank])) {
      launch.entry.after.push_back(*last);
    }
    const std::uint32_t entry = queue(thread, launch.stream, std::move(launch.entry));
    launch.comm->launches[launch.rank].push_back(entry);
    if (launches_block_) {
      wait_for(thread, {entry});
      break;
    }
  }
  if (thread.launches.empty()) thread.nccl_stage = NcclStage::None;
}

/// The latest that is called before this thread's call for certain.
std::optional<std::uint32_t> OrderWalk::last_before(
    const Thread& thread, const std::vector<std::uint32_t>& launches) const {
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
    if (graph_.last_known({*launch}, thread.call, thread.clock) != OrderGraph::kNone)
      return *launch;
  }
  return {};
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
  transfer->ranks = static_cast<std::uint32_t>(comm.next.size());
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
    transfer->from = sends ? rank : peer;
    transfer->to = sends ? peer : rank;
    transfer->is_held = rank != peer && holds(size);  // with itself within one group only
    return {mine.emplace_back(std::move(transfer)), rank};
  }
  auto transfer = theirs.front();
  theirs.pop_front();
  if (transfer->what != fmt::format("{}", size.count)) transfer->is_broken = true;
  return {std::move(transfer), rank};
}

}  // namespace foretrace
