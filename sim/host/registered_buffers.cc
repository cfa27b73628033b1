// Registered buffers: what a rank's calls have registered, whether an operation may use it, and
// what mapping the memory costs its peers.
#include <utility>

#include "scenarios/program/op_facts.h"
#include "sim/host/thread.h"

namespace foretrace::sim {

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

/// A call that a machine file may not know costs nothing then.
HostThread::Priced HostThread::known_call(Param param) {
  return machine_.has(param) ? price(begin_call(param)) : Priced{};
}

nccl::Offer HostThread::offer(CommId comm, const BufferRef& ref) const {
  const auto found = process_.registrations.find({comm, ref.resolve(variables_)});
  const bool registered = found != process_.registrations.end() && found->second.count > 0;
  const nccl::Settings& settings =
      world_.communicator(program_.comms[comm.value].communicator).settings();
  return {nccl::can_map(settings, buffer(ref).by_nccl, program_.devices > 1), registered};
}

/// Whether the operation under way may go straight into its peers' buffers, as this rank sees it;
/// notes in `mapped` those that the peers map, or have mapped.
bool HostThread::goes_directly(std::vector<BufferId>& mapped) const {
  if (capture_ == nullptr && process_.registrations.empty()) return false;
  const CommRef* const ref = nccl_comm(current_.op->kind);
  const CommId comm = ref->resolve(variables_);
  const NcclComm& at = world_.communicator(program_.comms[comm.value].communicator);
  const bool captured = capture_ != nullptr;
  const auto transfers = [&](const BufferRef& buffer) {
    mapped.push_back(buffer.resolve(variables_));
    return nccl::may_transfer_directly(at.settings(), offer(comm, buffer), captured);
  };
  if (const auto* send = std::get_if<NcclSend>(&current_.op->kind)) return transfers(send->buffer);
  if (const auto* recv = std::get_if<NcclRecv>(&current_.op->kind)) return transfers(recv->buffer);
  const auto& op = std::get<NcclCollective>(current_.op->kind);
  if (!nccl::is_send_recv(op.kind)) {
    const bool in_place = op.send.resolve(variables_) == op.recv.resolve(variables_);
    mapped.push_back(op.recv.resolve(variables_));
    return nccl::may_write_directly(at.settings(), op.kind, in_place, offer(comm, op.send),
                                    offer(comm, op.recv), captured);
  }
  const std::uint32_t rank = at.rank_of({process_.index, program_.comms[comm.value].device});
  const bool is_root = op.root.eval(variables_) == rank;
  const bool both = op.kind == CollectiveKind::AllToAll;
  const bool sends = both || (op.kind == CollectiveKind::Gather) != is_root;
  const bool sends_directly = !sends || transfers(op.send);
  return ((sends && !both) || transfers(op.recv)) && sends_directly;
}

/// The first operation that goes straight into a buffer has its peers map it.
Duration HostThread::map_time(const std::vector<BufferId>& buffers, const NcclCall& call) {
  const CommId comm = nccl_comm(current_.op->kind)->resolve(variables_);
  const CommHandle& handle = program_.comms[comm.value];
  NcclComm& communicator = world_.communicator(handle.communicator);
  if (!communicator.writes_directly(call, communicator.rank_of({process_.index, handle.device}))) {
    return Duration{0};
  }
  Duration time{0};
  for (const BufferId buffer : buffers) {
    Process::Registration& one = process_.registrations[{comm, buffer}];
    one.by_graph = one.by_graph || capture_ != nullptr;
    if (std::exchange(one.is_mapped, true) || !machine_.has(Param::NcclRegisterPeer)) continue;
    time += machine_.time(Param::NcclRegisterPeer);
  }
  return time;
}

}  // namespace foretrace::sim
