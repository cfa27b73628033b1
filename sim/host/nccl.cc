// NCCL calls of a host thread: alone or grouped, connect on first use, then one kernel per
// communicator and device.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "scenarios/program/op_refs.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

void HostThread::run(const NcclCommInit& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  NcclComm& comm = world_.communicator(handle.communicator);
  if (op.if_needed && comm.is_initialized()) {
    passed_ = true;
    return;
  }
  wait_for_connection(comm.initialize(comm.rank_of({process_.index, handle.device})));
  block(Duration{0}, Duration{0}, fmt::format("communicator {}", comm.declared().name));
}

void HostThread::run(const NcclCommDestroy& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  World::for_each_stream(process_, handle.device,
                         [this](StreamQueue& queue) { wait_for_stream(queue); });
  block(Duration{0}, machine_.time(Param::HostWake),
        fmt::format("device {} to end its work", handle.device));
}

void HostThread::run(const NcclCollective&) { nccl_call(); }
void HostThread::run(const NcclSend&) { nccl_call(); }
void HostThread::run(const NcclRecv&) { nccl_call(); }

/// Inside a group the call is only noted; alone it is a group of one.
void HostThread::nccl_call() {
  nccl_calls_.push_back({current_, variables_});
  if (group_depth_ > 0) {
    passed_ = true;
    return;
  }
  nccl_issue();
}

void HostThread::nccl_issue() {
  for (const NcclCall& call : nccl_calls_) nccl_connect(call);
  if (connections_.empty()) {
    nccl_launch_all();
    return;
  }
  after_connecting_ = true;
  block(Duration{0}, Duration{0}, "its peers to connect");
}

/// Everybody whose connection is not complete waits for the others on the host.
void HostThread::wait_for_connection(Connection* connection) {
  if (connection == nullptr) return;  // made before
  connections_.push_back(connection);
  ++pending_wakes_;
  if (connection->made()) {
    engine_.queue().at(engine_.now(), *this, kWake);  // this thread was the last to come
  } else {
    connection->waiters.push_back(this);
  }
}

void HostThread::nccl_connect(const NcclCall& call) {
  const auto comm_and_rank = [&](const CommRef& ref) {
    const CommHandle& handle = program_.comms[ref.resolve(call.variables).value];
    NcclComm& comm = world_.communicator(handle.communicator);
    return std::pair<NcclComm&, std::uint32_t>{comm, comm.rank_of({process_.index, handle.device})};
  };
  const OpKind& kind = call.execution.op->kind;
  if (const auto* op = std::get_if<NcclCollective>(&kind)) {
    const auto [comm, rank] = comm_and_rank(op->comm);
    wait_for_connection(comm.connect_collectives(rank));
  } else if (const auto* send = std::get_if<NcclSend>(&kind)) {
    const auto [comm, rank] = comm_and_rank(send->comm);
    wait_for_connection(
        comm.connect_pair(rank, static_cast<std::uint32_t>(send->peer.eval(call.variables))));
  } else if (const auto* recv = std::get_if<NcclRecv>(&kind)) {
    const auto [comm, rank] = comm_and_rank(recv->comm);
    wait_for_connection(
        comm.connect_pair(rank, static_cast<std::uint32_t>(recv->peer.eval(call.variables))));
  }
}

/// The collectives among `calls` that one kernel runs together, those made of sends and receives
/// apart.
std::vector<nccl::Call> HostThread::together_on(const CommHandle& handle,
                                                const std::vector<NcclCall>& calls) const {
  std::vector<nccl::Call> together;
  if (calls.size() < 2) return together;
  for (const NcclCall& call : calls) {
    const auto* op = std::get_if<NcclCollective>(&call.execution.op->kind);
    if (op == nullptr || nccl::is_send_recv(op->kind)) continue;
    const CommHandle& other = program_.comms[op->comm.resolve(call.variables).value];
    if (other.communicator != handle.communicator || other.device != handle.device) continue;
    together.push_back({op->kind, op->size.eval(call.variables), op->type, op->op});
  }
  return together;
}

/// One kernel per communicator handle, in the order of the first call on each.
std::vector<HostThread::NcclKernel> HostThread::nccl_prepare(const std::vector<NcclCall>& calls,
                                                             const QueueOf& queue_of,
                                                             Duration& call) {
  std::vector<NcclKernel> kernels;
  const auto join = [&](const NcclCall& entry, const CommRef& ref, const StreamRef& on,
                        auto&& transfer_of) {
    const CommHandle& handle = program_.comms[ref.resolve(entry.variables).value];
    NcclComm& comm = world_.communicator(handle.communicator);
    const std::uint32_t rank = comm.rank_of({process_.index, handle.device});
    auto at = std::ranges::find_if(kernels, [&](const NcclKernel& kernel) {
      return kernel.handle.communicator == handle.communicator &&
             kernel.handle.device == handle.device;
    });
    if (at == kernels.end()) {
      StreamQueue& queue = queue_of(stream_at(on, entry.variables));
      kernels.push_back({handle,
                         &queue,
                         std::make_shared<NcclLaunch>(queue, comm.last(rank)),
                         {},
                         entry.execution,
                         {},
                         together_on(handle, calls),
                         0});
      at = kernels.end() - 1;
      call +=
          call_cost(kernels.size() == 1 ? Param::NcclHostCollective : Param::NcclHostPerDevice) +
          device_switch(handle.device) + comm.mixing_time();
    } else {
      call += machine_.call_time(Param::NcclHostPerOp);
    }
    const std::shared_ptr<Transfer> transfer = transfer_of(*at, comm, rank);
    const nccl::Choice& choice = transfer->cost().choice;
    if (choice.channels > at->choice.channels || at->launch->executions().empty())
      at->choice = choice;
    at->launch->add(transfer, rank, entry.execution, choice);
    call += comm.host_time(rank, entry.execution.op->kind, entry.variables, choice);
    // Available once its own device's part of the group has been issued.
    at->issued = call;
  };
  const auto has = [&]<class Kind>(std::type_identity<Kind>) {
    return std::ranges::any_of(calls, [](const NcclCall& other) {
      return std::holds_alternative<Kind>(other.execution.op->kind);
    });
  };
  const bool both_ways = has(std::type_identity<NcclSend>{}) && has(std::type_identity<NcclRecv>{});
  for (const NcclCall& entry : calls) {
    const OpKind& kind = entry.execution.op->kind;
    const Variables v = entry.variables;
    if (const auto* op = std::get_if<NcclCollective>(&kind)) {
      join(entry, op->comm, op->stream,
           [&](NcclKernel& kernel, NcclComm& comm, std::uint32_t rank) {
             const std::size_t place = kernel.joined;
             if (!nccl::is_send_recv(op->kind)) ++kernel.joined;
             return comm.join_collective(rank, *op, op->size.eval(v), op->root.eval(v),
                                         kernel.together, place);
           });
    } else if (const auto* send = std::get_if<NcclSend>(&kind)) {
      join(entry, send->comm, send->stream, [&](NcclKernel&, NcclComm& comm, std::uint32_t rank) {
        return comm.join_send_recv(rank, static_cast<std::uint32_t>(send->peer.eval(v)), true,
                                   send->size.eval(v), both_ways);
      });
    } else if (const auto* recv = std::get_if<NcclRecv>(&kind)) {
      join(entry, recv->comm, recv->stream, [&](NcclKernel&, NcclComm& comm, std::uint32_t rank) {
        return comm.join_send_recv(static_cast<std::uint32_t>(recv->peer.eval(v)), rank, false,
                                   recv->size.eval(v), both_ways);
      });
    }
  }
  for (NcclKernel& kernel : kernels) {
    SpanDetail detail;
    detail.algorithm = name_of(kernel.choice.algorithm);
    detail.protocol = name_of(kernel.choice.protocol);
    detail.channels = kernel.launch->channels();
    kernel.launch->set_detail(recorder_.detail(detail));
  }
  return kernels;
}

void HostThread::nccl_launch_all() {
  const std::vector<NcclCall> calls = std::exchange(nccl_calls_, {});
  if (capture_ != nullptr) {
    take(machine_.time(Param::HostCapture) * static_cast<std::int64_t>(calls.size()));
    for (const NcclCall& entry : calls) {
      const CommId handle = nccl_comm(entry.execution.op->kind)->resolve(entry.variables);
      world_.communicator(program_.comms[handle.value].communicator).set_captured();
    }
    capture_->capture(calls);
    return;
  }
  Duration call{0};
  const auto itself = [](StreamQueue& stream) -> StreamQueue& { return stream; };
  for (NcclKernel& kernel : nccl_prepare(calls, itself, call)) {
    NcclComm& comm = world_.communicator(kernel.handle.communicator);
    const std::uint32_t rank = comm.rank_of({process_.index, kernel.handle.device});
    kernel.stream->push({kernel.execution,
                         engine_.now() + kernel.issued + machine_.time(Param::NcclLaunchLatency), 0,
                         1, NcclWork{kernel.launch}});
    comm.last(rank) = {kernel.stream, kernel.stream->issued()};
  }
  take(call);
}

}  // namespace foretrace::sim
