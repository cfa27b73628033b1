// Before NCCL launches: communicators that the run makes, and connections at first use.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "scenarios/program/op_facts.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

void HostThread::run(const NcclCommInit& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  NcclComm& comm = world_.communicator(handle.communicator);
  if (op.if_needed && comm.is_initialized()) {
    passed_ = true;
    return;
  }
  ++pending_wakes_;
  wait_for_connection(comm.initialize(comm.rank_of({process_.index, handle.device})));
  engine_.queue().at(engine_.now(), *this, kWake);
  // Whoever comes last waits for nothing else.
  waiting_detail_ = price([](Reading& read) { return read.time(Param::NcclInit); }).detail;
  block({}, Duration{0}, fmt::format("communicator {}", comm.declared().name));
}

void HostThread::run(const NcclCommDestroy& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  World::for_each_stream(process_, handle.device,
                         [this](StreamQueue& queue) { wait_for_stream(queue); });
  block({}, cost::Wait::Device, fmt::format("device {} to end its work", handle.device));
}

/// Everybody whose connection is not complete waits for the others on the host.
void HostThread::wait_for_connection(Connection* connection) {
  if (connection == nullptr) return;  // made before
  connections_.push_back(connection);
  if (connection->made()) return;
  ++pending_wakes_;
  connection->waiters.push_back(this);
}

void HostThread::nccl_issue() {
  nccl_stage_ = NcclStage::Pairs;
  nccl_go_on();
}

/// Pairs of ranks connect first, then all of a communicator; then it launches.
void HostThread::nccl_go_on() {
  while (nccl_stage_ != NcclStage::Launch) {
    const bool is_pairs = nccl_stage_ == NcclStage::Pairs;
    nccl_stage_ = is_pairs ? NcclStage::Collectives : NcclStage::Launch;
    ++pending_wakes_;  // until it has asked for all: the last to come wakes itself, too
    if (is_pairs) {
      connect_pairs();
    } else {
      connect_collectives();
    }
    if (connections_.empty()) {
      --pending_wakes_;
      continue;
    }
    has_connected_ = true;
    engine_.queue().at(engine_.now(), *this, kWake);
    block({}, Duration{0}, "its peers to connect");
    return;
  }
  if (!nccl_kernels_.empty()) {
    nccl_launch_next();
    return;
  }
  nccl_stage_ = NcclStage::None;
  nccl_launch_all();
}

/// What one rank sends and receives in a group connects together.
void HostThread::connect_pairs() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<NcclConnections::Pair>> pairs;
  for (const NcclCall& call : nccl_calls_) {
    const OpKind& kind = call.execution.op->kind;
    const auto* send = std::get_if<NcclSend>(&kind);
    const auto* recv = std::get_if<NcclRecv>(&kind);
    if (send == nullptr && recv == nullptr) continue;
    const CommHandle& handle = handle_of(call);
    const std::uint32_t rank =
        world_.communicator(handle.communicator).rank_of({process_.index, handle.device});
    const Expr& other = send != nullptr ? send->peer : recv->peer;
    const auto peer = static_cast<std::uint32_t>(other.eval(call.variables));
    pairs[{handle.communicator, rank}].push_back(
        send != nullptr ? NcclConnections::Pair{rank, peer} : NcclConnections::Pair{peer, rank});
  }
  for (const auto& [of, of_rank] : pairs) {
    wait_for_connection(world_.communicator(of.first).connect_pairs(of.second, of_rank));
  }
}

void HostThread::connect_collectives() {
  for (const NcclCall& call : nccl_calls_) {
    if (!std::holds_alternative<NcclCollective>(call.execution.op->kind)) continue;
    const CommHandle& handle = handle_of(call);
    NcclComm& comm = world_.communicator(handle.communicator);
    wait_for_connection(comm.connect_collectives(comm.rank_of({process_.index, handle.device})));
  }
}

const CommHandle& HostThread::handle_of(const NcclCall& call) const {
  return program_.comms[nccl_comm(call.execution.op->kind)->resolve(call.variables).value];
}

}  // namespace foretrace::sim
