// NCCL's operations of a host thread.
#include <fmt/format.h>

#include <utility>

#include "scenarios/program/op_facts.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

/// A communicator of one rank has nobody to talk to: NCCL copies what is not in place, and launches
/// no kernel of its own (ncclLaunchOneRank).
void HostThread::run(const NcclCollective& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(variables_).value];
  if (world_.communicator(handle.communicator).ranks() > 1) {
    add_nccl();
  } else if (op.send.resolve(variables_) == op.recv.resolve(variables_)) {
    const bool known = machine_.has(Param::NcclHostGrouped);
    take(price(begin_call(known ? Param::NcclHostGrouped : Param::NcclHostPerOp, handle.device)));
  } else {
    copy(stream(op.stream), op.send, op.recv, op.size.eval(variables_), false);
  }
}
void HostThread::run(const NcclSend&) { add_nccl(); }
void HostThread::run(const NcclRecv&) { add_nccl(); }

/// Inside a group the call is only noted; alone it is a group of one.
void HostThread::add_nccl() {
  nccl_.add();
  if (group_depth_ > 0) {
    pass();
  } else {
    nccl_.issue();
  }
}

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

void HostThread::run(const NcclCommRegister& op) {
  ++process_.registrations[{op.comm.resolve(variables_), op.buffer.resolve(variables_)}].count;
  take(known_call(Param::NcclRegister));
}

/// The peers unmap it with the last registration, and map it anew for the next; a graph's stays.
void HostThread::run(const NcclCommDeregister& op) {
  const auto at =
      process_.registrations.find({op.comm.resolve(variables_), op.buffer.resolve(variables_)});
  if (at != process_.registrations.end() && --at->second.count == 0 && !at->second.by_graph) {
    process_.registrations.erase(at);
  }
  take(known_call(Param::NcclRegister));
}

}  // namespace foretrace::sim
