// Registered buffers: what a rank's calls have registered, whether an operation may use it, and
// what mapping the memory costs its peers.
#include <utility>

#include "scenarios/program/op_facts.h"
#include "sim/host/nccl_calls.h"

namespace foretrace::sim {

nccl::Offer NcclCalls::offer(CommId comm, const BufferRef& ref) const {
  const auto found = caller_.process().registrations.find({comm, ref.resolve(caller_.variables())});
  const bool registered = found != caller_.process().registrations.end() && found->second.count > 0;
  const nccl::Settings& settings =
      caller_.world().communicator(caller_.program().comms[comm.value].communicator).settings();
  return {nccl::can_map(settings, caller_.buffer(ref).by_nccl, caller_.program().devices > 1),
          registered};
}

/// Whether the operation under way may go straight into its peers' buffers, as this rank sees it;
/// notes in `mapped` those that the peers map, or have mapped.
bool NcclCalls::goes_directly(std::vector<BufferId>& mapped) const {
  if (caller_.capture() == nullptr && caller_.process().registrations.empty()) return false;
  const CommRef* const ref = nccl_comm(caller_.execution().op->kind);
  const CommId comm = ref->resolve(caller_.variables());
  const NcclComm& at =
      caller_.world().communicator(caller_.program().comms[comm.value].communicator);
  const bool captured = caller_.capture() != nullptr;
  const auto transfers = [&](const BufferRef& buffer) {
    mapped.push_back(buffer.resolve(caller_.variables()));
    return nccl::may_transfer_directly(at.settings(), offer(comm, buffer), captured);
  };
  if (const auto* send = std::get_if<NcclSend>(&caller_.execution().op->kind))
    return transfers(send->buffer);
  if (const auto* recv = std::get_if<NcclRecv>(&caller_.execution().op->kind))
    return transfers(recv->buffer);
  const auto& op = std::get<NcclCollective>(caller_.execution().op->kind);
  if (!nccl::is_send_recv(op.kind)) {
    const bool in_place =
        op.send.resolve(caller_.variables()) == op.recv.resolve(caller_.variables());
    mapped.push_back(op.recv.resolve(caller_.variables()));
    return nccl::may_write_directly(at.settings(), op.kind, in_place, offer(comm, op.send),
                                    offer(comm, op.recv), captured);
  }
  const std::uint32_t rank =
      at.rank_of({caller_.process().index, caller_.program().comms[comm.value].device});
  const bool is_root = op.root.eval(caller_.variables()) == rank;
  const bool both = op.kind == CollectiveKind::AllToAll;
  const bool sends = both || (op.kind == CollectiveKind::Gather) != is_root;
  const bool sends_directly = !sends || transfers(op.send);
  return ((sends && !both) || transfers(op.recv)) && sends_directly;
}

/// The first operation that goes straight into a buffer has its peers map it.
Duration NcclCalls::map_time(const std::vector<BufferId>& buffers, const NcclCall& call) {
  const CommId comm = nccl_comm(caller_.execution().op->kind)->resolve(caller_.variables());
  const CommHandle& handle = caller_.program().comms[comm.value];
  NcclComm& communicator = caller_.world().communicator(handle.communicator);
  if (!communicator.writes_directly(
          call, communicator.rank_of({caller_.process().index, handle.device}))) {
    return Duration{0};
  }
  Duration time{0};
  for (const BufferId buffer : buffers) {
    Process::Registration& one = caller_.process().registrations[{comm, buffer}];
    one.by_graph = one.by_graph || caller_.capture() != nullptr;
    if (std::exchange(one.is_mapped, true) || !caller_.machine().has(Param::NcclRegisterPeer))
      continue;
    time += caller_.machine().time(Param::NcclRegisterPeer);
  }
  return time;
}

}  // namespace foretrace::sim
