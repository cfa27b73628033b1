// Before NCCL launches: communicators that the run makes, and connections at first use.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scenarios/program/op_facts.h"
#include "sim/host/nccl_calls.h"

namespace foretrace::sim {

void NcclCalls::issue() {
  stage_ = Stage::Pairs;
  go_on();
}

/// Pairs of ranks connect first, then all of a communicator; then it launches.
bool NcclCalls::go_on() {
  if (stage_ == Stage::None) return false;
  while (stage_ != Stage::Launch) {
    const bool is_pairs = stage_ == Stage::Pairs;
    stage_ = is_pairs ? Stage::Collectives : Stage::Launch;
    caller_.hold();  // until it has asked for all: the last to come wakes itself, too
    if (is_pairs) {
      connect_pairs();
    } else {
      connect_collectives();
    }
    if (!caller_.waits_for_connection()) {
      caller_.release();
      continue;
    }
    has_connected_ = true;
    caller_.wake_soon();
    caller_.block({}, Duration{0}, "its peers to connect");
    return true;
  }
  if (!kernels_.empty()) {
    launch_next();
    return true;
  }
  const auto is_held = [this](const NcclCall& call) {
    return caller_.waits_for_context(handle_of(call).device);
  };
  if (std::ranges::any_of(calls_, is_held)) return true;
  stage_ = Stage::None;
  launch_all();
  return true;
}

/// What one rank sends and receives in a group connects together.
void NcclCalls::connect_pairs() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<NcclConnections::Pair>> pairs;
  for (const NcclCall& call : calls_) {
    const OpKind& kind = call.execution.op->kind;
    const auto* send = std::get_if<NcclSend>(&kind);
    const auto* recv = std::get_if<NcclRecv>(&kind);
    if (send == nullptr && recv == nullptr) continue;
    const CommHandle& handle = handle_of(call);
    const std::uint32_t rank = caller_.world()
                                   .communicator(handle.communicator)
                                   .rank_of({caller_.process().index, handle.device});
    const Expr& other = send != nullptr ? send->peer : recv->peer;
    const auto peer = static_cast<std::uint32_t>(other.eval(call.variables));
    pairs[{handle.communicator, rank}].push_back(
        send != nullptr ? NcclConnections::Pair{rank, peer} : NcclConnections::Pair{peer, rank});
  }
  for (const auto& [of, of_rank] : pairs) {
    caller_.wait_for_connection(
        caller_.world().communicator(of.first).connect_pairs(of.second, of_rank));
  }
}

void NcclCalls::connect_collectives() {
  for (const NcclCall& call : calls_) {
    if (!std::holds_alternative<NcclCollective>(call.execution.op->kind)) continue;
    const CommHandle& handle = handle_of(call);
    NcclComm& comm = caller_.world().communicator(handle.communicator);
    caller_.wait_for_connection(
        comm.connect_collectives(comm.rank_of({caller_.process().index, handle.device})));
  }
}

const CommHandle& NcclCalls::handle_of(const NcclCall& call) const {
  return caller_.program().comms[nccl_comm(call.execution.op->kind)->resolve(call.variables).value];
}

}  // namespace foretrace::sim
