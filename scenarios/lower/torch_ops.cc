// torch.distributed over NCCL, as PyTorch 2's ProcessGroupNCCL does it: the group's stream waits
// for the current one, NCCL runs on the group's stream, and a work is an event recorded behind it.
// Who waits for that event is the difference between async: false, work_wait and a timeout.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/lower/process_group_call.h"

namespace foretrace {
namespace {

using enum CollectiveKind;

void issue(OpFields& fields, const GroupCall& call, OpKind kind, Lowering& out) {
  begin_call(fields.group_of(call.comm).initialises, call, out);
  out.add(std::move(kind), out.label());
  end_call(call, out);
}

template <CollectiveKind kKind>
void read_collective(OpFields& fields, Lowering& out) {
  constexpr BufferKeys kKeys{"input", "output", "input", "output"};
  constexpr bool kToAll = kKind == Broadcast || kKind == Scatter;
  GroupCall call = read_call(fields, out);
  NcclCollective op = read_collective_data(fields, kKind, call.comm, kKeys);
  op.stream = call.internal;
  if (has_root(kKind)) op.root = read_rank(fields, call, "root", kToAll ? "src" : "dst");
  read_async(fields, call);
  issue(fields, call, std::move(op), out);
}

/// Buffer, size, type and peer of NcclSend or NcclRecv.
template <class Transfer>
Transfer read_transfer(OpFields& fields, const GroupCall& call) {
  TransferData data = read_transfer_data(fields);
  constexpr bool kSends = std::is_same_v<Transfer, NcclSend>;
  return {call.comm,
          call.internal,
          std::move(data.buffer),
          std::move(data.size),
          data.type,
          read_rank(fields, call, "peer", kSends ? "dst" : "src")};
}

/// Outside of a batch.
template <class Transfer>
void issue_transfer(OpFields& fields, const GroupCall& call, Lowering& out) {
  Transfer transfer = read_transfer<Transfer>(fields, call);
  const GroupCall pair = call_of_pair(fields, call, transfer.peer);
  transfer.comm = pair.comm;
  transfer.stream = pair.internal;
  begin_call(fields.group_of(call.comm).initialises, pair, out);
  out.add(std::move(transfer), out.label());
  end_call(pair, out);
}

template <class Transfer>
void read_sync_transfer(OpFields& fields, Lowering& out) {
  const GroupCall call = read_call(fields, out);
  issue_transfer<Transfer>(fields, call, out);
}

template <class Transfer>
void read_async_transfer(OpFields& fields, Lowering& out) {
  GroupCall call = read_call(fields, out);
  give_work(fields, call);
  issue_transfer<Transfer>(fields, call, out);
}

/// One of the list in a batch: isend or irecv, without what the batch says for all.
void read_batched(OpFields& batch, const YamlNode& node, const GroupCall& call, Lowering& out,
                  Block& group) {
  Problems& problems = batch.reader().problems;
  if (node.kind != YamlNode::Kind::Map || node.entries.size() != 1) {
    problems.error(node, "an operation is one name with its keys: 'name: {...}'");
    return;
  }
  const auto& [key, value] = node.entries.front();
  if (key.text != "isend" && key.text != "irecv") {
    problems.error(key, fmt::format("'{}' cannot stand in a batch_isend_irecv", key.text),
                   "only isend and irecv can");
    return;
  }
  MapReader map{value, key.text + " of a batch", problems};
  OpFields fields{batch.reader(), map};
  const YamlNode* id = map.optional("id");
  std::string label = id == nullptr ? "" : read_word(batch.reader(), *id, "an id");
  Lowering inner{
      batch.program(), out.thread(), {{}, {}, key.place().first, key.place().second, {}}, group};
  if (key.text == "isend") {
    inner.add(read_transfer<NcclSend>(fields, call), std::move(label));
  } else {
    inner.add(read_transfer<NcclRecv>(fields, call), std::move(label));
  }
  map.finish();
}

void read_batch(OpFields& fields, Lowering& out) {
  GroupCall call = read_call(fields, out);
  give_work(fields, call);
  begin_call(fields.group_of(call.comm).initialises, call, out);
  const YamlNode* ops = fields.map().required("ops");
  if (ops != nullptr && (ops->kind != YamlNode::Kind::Sequence || ops->items.empty())) {
    fields.reader().problems.error(*ops, "'ops' is a list of isend and irecv");
  }
  Block& group = out.add_nccl_group();
  if (ops != nullptr) {
    for (const YamlNode& item : ops->items) read_batched(fields, item, call, out, group);
  }
  end_call(call, out);
}

/// One element for every rank to sum, which no file can name.
BufferRef barrier_buffer(OpFields& fields, const GroupCall& call) {
  auto& buffers = fields.program().buffers;
  ProcessGroup& group = fields.group_of(call.comm);
  if (!group.first_barrier_buffer) {
    group.first_barrier_buffer = static_cast<std::uint32_t>(buffers.size());
    for (std::uint32_t device = 0; device < group.devices; ++device) {
      buffers.push_back(
          {fmt::format("{}.barrier({})", fields.communicator_of(call.comm).name, device),
           MemoryKind::Device,
           device,
           {kScalarBytes},
           Contents::Zeros,
           false});
    }
  }
  return {BufferId{*group.first_barrier_buffer}, device_index(fields.reader(), call.comm)};
}

/// The current stream waits as for any collective, and then the host for the stream.
void read_barrier(OpFields& fields, Lowering& out) {
  const GroupCall call = read_call(fields, out);
  const BufferRef one = barrier_buffer(fields, call);
  issue(fields, call,
        NcclCollective{AllReduce,
                       call.comm,
                       call.internal,
                       one,
                       one,
                       {Expr{kScalarBytes}},
                       DataType::Float32,
                       RedOp::Sum,
                       {}},
        out);
  out.add(StreamSynchronize{call.current}, out.label());
}

constexpr std::string_view kTorchReducing =
    "group [stream] (buffer | input output) [size] type [op] [async] [work]";
constexpr std::string_view kTorchMoving =
    "group [stream] (buffer | input output) [size] type [async] [work]";
constexpr std::string_view kFromRoot =
    "group [stream] (buffer | input output) [size] type (root | src) [async] [work]";
constexpr std::string_view kToRoot =
    "group [stream] (buffer | input output) [size] type (root | dst) [async] [work]";

constexpr std::array kTorchOps{
    LoweredSyntax{"all_reduce", kTorchReducing, "torch: every rank gets the sum",
                  read_collective<AllReduce>},
    LoweredSyntax{"broadcast", kFromRoot, "torch: every rank gets the root's data",
                  read_collective<Broadcast>},
    LoweredSyntax{
        "reduce",
        "group [stream] (buffer | input output) [size] type [op] (root | dst) [async] [work]",
        "torch: the root gets the sum", read_collective<Reduce>},
    LoweredSyntax{"all_gather", kTorchMoving, "torch: every rank gets every rank's part",
                  read_collective<AllGather>},
    LoweredSyntax{"reduce_scatter", kTorchReducing, "torch: every rank gets its part of the sum",
                  read_collective<ReduceScatter>},
    LoweredSyntax{"all_to_all", kTorchMoving, "torch: every rank sends a part to every rank",
                  read_collective<AllToAll>},
    LoweredSyntax{"gather", kToRoot, "torch: the root gets every rank's part",
                  read_collective<Gather>},
    LoweredSyntax{"scatter", kFromRoot, "torch: every rank gets its part of the root's data",
                  read_collective<Scatter>},
    LoweredSyntax{"send", "group [stream] buffer [size] type (peer | dst)",
                  "torch: the current stream waits until it is sent", read_sync_transfer<NcclSend>},
    LoweredSyntax{"recv", "group [stream] buffer [size] type (peer | src)",
                  "torch: the current stream waits until it is received",
                  read_sync_transfer<NcclRecv>},
    LoweredSyntax{"isend", "group [stream] buffer [size] type (peer | dst) work",
                  "torch: sends behind the work so far", read_async_transfer<NcclSend>},
    LoweredSyntax{"irecv", "group [stream] buffer [size] type (peer | src) work",
                  "torch: receives behind the work so far", read_async_transfer<NcclRecv>},
    LoweredSyntax{"batch_isend_irecv", "group [stream] ops work",
                  "torch: a list of isend and irecv in one nccl_group", read_batch},
    LoweredSyntax{"barrier", "group [stream]", "torch: the host waits until every rank is here",
                  read_barrier},
};

}  // namespace

std::span<const LoweredSyntax> torch_ops() { return kTorchOps; }

}  // namespace foretrace
