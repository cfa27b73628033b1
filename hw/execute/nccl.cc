#include <algorithm>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/nccl_check.h"
#include "hw/execute/execute.h"

namespace foretrace::hw {
namespace {

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::Float16:
      return ncclFloat16;
    case DataType::BFloat16:
      return ncclBfloat16;
    case DataType::Float32:
      return ncclFloat32;
    case DataType::Float64:
      return ncclFloat64;
    case DataType::Int8:
      return ncclInt8;
    case DataType::Int32:
      return ncclInt32;
    case DataType::Int64:
      return ncclInt64;
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      break;  // operands of products only
  }
  return ncclFloat32;
}

ncclRedOp_t nccl_op(RedOp op) {
  switch (op) {
    case RedOp::Sum:
      return ncclSum;
    case RedOp::Prod:
      return ncclProd;
    case RedOp::Min:
      return ncclMin;
    case RedOp::Max:
      return ncclMax;
    case RedOp::Avg:
      return ncclAvg;
  }
  return ncclSum;
}

/// One NCCL call's arguments, resolved.
struct Call {
  CommId id;
  ncclComm_t comm;
  cudaStream_t stream;
  std::size_t count;
  ncclDataType_t type;
};

template <class Op>
Call call_of(const Op& op, Context& context) {
  const Variables v = context.variables;
  const CommId id = op.comm.resolve(v);
  return {id, context.objects.comm(id).handle(), context.objects.stream(op.stream.resolve(v)).use(),
          op.size.eval(v).count / size_of(op.type).count, nccl_type(op.type)};
}

void log_call(Context& context) { context.state.nccl_calls.push(context.state.current()); }

/// A collective's two buffers; in place, one of them is a rank's part of the other.
struct Ends {
  const std::byte* send;
  std::byte* recv;
};

Ends ends_of(const NcclCollective& op, CommId id, Context& context) {
  const Variables v = context.variables;
  const BufferId send = op.send.resolve(v);
  const BufferId recv = op.recv.resolve(v);
  Ends ends{static_cast<const std::byte*>(context.objects.buffer(send).data()),
            static_cast<std::byte*>(context.objects.buffer(recv).data())};
  if (send != recv) return ends;
  const auto rank = static_cast<std::size_t>(context.objects.rank(id));
  const std::size_t part = op.size.eval(v).count;
  const auto root = static_cast<std::size_t>(op.root.eval(v));
  switch (op.kind) {
    case CollectiveKind::AllGather:
      ends.send += rank * part;
      break;
    case CollectiveKind::ReduceScatter:
      ends.recv += rank * part;
      break;
    case CollectiveKind::Gather:
      if (rank == root) ends.send += rank * part;
      break;
    case CollectiveKind::Scatter:
      if (rank == root) ends.recv += rank * part;
      break;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce:
    case CollectiveKind::AllToAll:
      break;
  }
  return ends;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
ncclResult_t all_to_all(const Ends& ends, const Call& call, std::size_t) {
  return ncclAlltoAll(ends.send, ends.recv, call.count, call.type, call.comm, call.stream);
}
ncclResult_t gather(const Ends& ends, const Call& call, int root, std::size_t, int) {
  return ncclGather(ends.send, ends.recv, call.count, call.type, root, call.comm, call.stream);
}
ncclResult_t scatter(const Ends& ends, const Call& call, int root, std::size_t, int) {
  return ncclScatter(ends.send, ends.recv, call.count, call.type, root, call.comm, call.stream);
}
#else
// Before 2.28 these are what everybody writes: one group of sends and receives.
int ranks_of(ncclComm_t comm) {
  int ranks = 0;
  nccl_check(ncclCommCount(comm, &ranks));
  return ranks;
}
ncclResult_t all_to_all(const Ends& ends, const Call& call, std::size_t part) {
  nccl_check(ncclGroupStart());
  for (int peer = 0; peer < ranks_of(call.comm); ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * part;
    nccl_check(ncclSend(ends.send + offset, call.count, call.type, peer, call.comm, call.stream));
    nccl_check(ncclRecv(ends.recv + offset, call.count, call.type, peer, call.comm, call.stream));
  }
  return ncclGroupEnd();
}
ncclResult_t gather(const Ends& ends, const Call& call, int root, std::size_t part, int rank) {
  nccl_check(ncclGroupStart());
  nccl_check(ncclSend(ends.send, call.count, call.type, root, call.comm, call.stream));
  for (int peer = 0; rank == root && peer < ranks_of(call.comm); ++peer) {
    nccl_check(ncclRecv(ends.recv + static_cast<std::size_t>(peer) * part, call.count, call.type,
                        peer, call.comm, call.stream));
  }
  return ncclGroupEnd();
}
ncclResult_t scatter(const Ends& ends, const Call& call, int root, std::size_t part, int rank) {
  nccl_check(ncclGroupStart());
  for (int peer = 0; rank == root && peer < ranks_of(call.comm); ++peer) {
    nccl_check(ncclSend(ends.send + static_cast<std::size_t>(peer) * part, call.count, call.type,
                        peer, call.comm, call.stream));
  }
  nccl_check(ncclRecv(ends.recv, call.count, call.type, root, call.comm, call.stream));
  return ncclGroupEnd();
}
#endif

ncclResult_t call_collective(const NcclCollective& op, const Call& call, const Ends& ends, int root,
                             std::size_t part, int rank) {
  const ncclRedOp_t red = nccl_op(op.op);
  const auto& [id, comm, stream, count, type] = call;
  switch (op.kind) {
    case CollectiveKind::AllReduce:
      return ncclAllReduce(ends.send, ends.recv, count, type, red, comm, stream);
    case CollectiveKind::Broadcast:
      return ncclBroadcast(ends.send, ends.recv, count, type, root, comm, stream);
    case CollectiveKind::Reduce:
      return ncclReduce(ends.send, ends.recv, count, type, red, root, comm, stream);
    case CollectiveKind::AllGather:
      return ncclAllGather(ends.send, ends.recv, count, type, comm, stream);
    case CollectiveKind::ReduceScatter:
      return ncclReduceScatter(ends.send, ends.recv, count, type, red, comm, stream);
    case CollectiveKind::AllToAll:
      return all_to_all(ends, call, part);
    case CollectiveKind::Gather:
      return gather(ends, call, root, part, rank);
    case CollectiveKind::Scatter:
      return scatter(ends, call, root, part, rank);
  }
  return ncclInvalidArgument;
}

}  // namespace

void begin_group(Context& context) {
  nccl_check(ncclGroupStart());
  ++context.group_depth;
}

void end_group(Context& context) {
  --context.group_depth;
  nccl_check(ncclGroupEnd());
  if (context.group_depth > 0) return;
  for (const CommId id : context.created_in_group) context.objects.comm(id).publish();
  context.created_in_group.clear();
}

void execute(const NcclCommInit& op, Context& context) {
  const CommId id = op.comm.resolve(context.variables);
  const CommHandle& handle = context.program.comms[id.value];
  const auto& members = context.program.communicators[handle.communicator].members;
  Communicator& comm = context.objects.comm(id);
  if (op.if_needed &&
      (comm || std::ranges::find(context.created_in_group, id) != context.created_in_group.end())) {
    return;
  }
  use_device(context.objects.ordinal(handle.device));
  log_call(context);
  nccl_check(ncclCommInitRank(comm.created(), static_cast<int>(members.size()),
                              context.objects.comm_id(id), context.objects.rank(id)));
  if (context.group_depth > 0) {
    context.created_in_group.push_back(id);
  } else {
    comm.publish();
  }
}

void execute(const NcclCommDestroy& op, Context& context) {
  const CommId id = op.comm.resolve(context.variables);
  use_device(context.objects.ordinal(context.program.comms[id.value].device));
  context.objects.registrations().forget(id);
  nccl_check(ncclCommDestroy(context.objects.comm(id).release()));
}

void execute(const NcclCommRegister& op, Context& context) {
  const CommId id = op.comm.resolve(context.variables);
  const BufferId buffer = op.buffer.resolve(context.variables);
  use_device(context.objects.ordinal(context.program.comms[id.value].device));
  context.objects.registrations().add(id, context.objects.comm(id).handle(), buffer,
                                      context.objects.buffer(buffer));
}

void execute(const NcclCommDeregister& op, Context& context) {
  const CommId id = op.comm.resolve(context.variables);
  const BufferId buffer = op.buffer.resolve(context.variables);
  use_device(context.objects.ordinal(context.program.comms[id.value].device));
  context.objects.registrations().remove(id, context.objects.comm(id).handle(), buffer);
}

void execute(const NcclCollective& op, Context& context) {
  const Call call = call_of(op, context);
  log_call(context);
  nccl_check(call_collective(op, call, ends_of(op, call.id, context),
                             static_cast<int>(op.root.eval(context.variables)),
                             op.size.eval(context.variables).count, context.objects.rank(call.id)));
}

void execute(const NcclSend& op, Context& context) {
  const Variables v = context.variables;
  const Call call = call_of(op, context);
  log_call(context);
  nccl_check(ncclSend(context.objects.buffer(op.buffer.resolve(v)).data(), call.count, call.type,
                      static_cast<int>(op.peer.eval(v)), call.comm, call.stream));
}

void execute(const NcclRecv& op, Context& context) {
  const Variables v = context.variables;
  const Call call = call_of(op, context);
  log_call(context);
  nccl_check(ncclRecv(context.objects.buffer(op.buffer.resolve(v)).data(), call.count, call.type,
                      static_cast<int>(op.peer.eval(v)), call.comm, call.stream));
}

}  // namespace foretrace::hw
