#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/read/nccl_fields.h"

namespace foretrace {
namespace {

using enum CollectiveKind;

struct CollectiveSyntax {
  CollectiveKind kind;
  bool reduces;
  bool has_root;
  bool send_is_per_peer;  ///< the send buffer holds one part per rank
  bool recv_is_per_peer;
};

constexpr std::array kCollectives{
    CollectiveSyntax{AllReduce, true, false, false, false},
    CollectiveSyntax{Broadcast, false, true, false, false},
    CollectiveSyntax{Reduce, true, true, false, false},
    CollectiveSyntax{AllGather, false, false, false, true},
    CollectiveSyntax{ReduceScatter, true, false, true, false},
    CollectiveSyntax{AllToAll, false, false, true, true},
    CollectiveSyntax{Gather, false, true, false, true},
    CollectiveSyntax{Scatter, false, true, true, false},
};
static_assert(std::ranges::all_of(kCollectives, [](const CollectiveSyntax& syntax) {
  return &syntax - kCollectives.data() == static_cast<int>(syntax.kind);
}));

void read_collective_buffers(OpFields& fields, const BufferKeys& keys, NcclCollective& op) {
  MapReader& map = fields.map();
  if (!map.has("buffer")) {
    op.send = fields.buffer(keys.send, kDeviceMemory);
    op.recv = fields.buffer(keys.recv, kDeviceMemory);
    static_cast<void>(map.optional("buffer"));
    return;
  }
  op.send = fields.buffer("buffer", kDeviceMemory);
  op.recv = op.send;
  for (const std::string_view key : {keys.send, keys.recv}) {
    if (map.has(key)) {
      fields.reader().problems.error(
          fields.where(key),
          fmt::format("either 'buffer' (in place) or {} and {}, not both", keys.send, keys.recv));
    }
    static_cast<void>(map.optional(key));
  }
}

}  // namespace

std::int64_t rank_count(const OpFields& fields, const CommRef& comm) {
  return static_cast<std::int64_t>(fields.communicator_of(comm).members.size());
}

StreamRef stream_beside(OpFields& fields, const CommRef& comm) {
  if (fields.map().has("stream")) return fields.stream();
  static_cast<void>(fields.map().optional("stream"));
  return {StreamId{0}, device_index(fields.reader(), comm)};
}

bool has_root(CollectiveKind kind) {
  return kCollectives.at(static_cast<std::size_t>(kind)).has_root;
}

NcclCollective read_collective_data(OpFields& fields, CollectiveKind kind, const CommRef& comm,
                                    const BufferKeys& keys) {
  const CollectiveSyntax& syntax = kCollectives.at(static_cast<std::size_t>(kind));
  NcclCollective op{};
  op.kind = kind;
  op.comm = comm;
  read_collective_buffers(fields, keys, op);
  op.type = fields.required_type();
  if (syntax.reduces) op.op = fields.red_op();

  const std::int64_t ranks = rank_count(fields, comm);
  const auto parts = [ranks](bool is_per_peer) {
    return static_cast<std::uint64_t>(is_per_peer ? ranks : 1);
  };
  const std::uint64_t element = size_of(op.type).count;
  const std::uint64_t sent = fields.buffer_of(op.send).size.count / parts(syntax.send_is_per_peer);
  const std::uint64_t got = fields.buffer_of(op.recv).size.count / parts(syntax.recv_is_per_peer);
  for (const auto& [ref, is_per_peer] : {std::pair{&op.send, syntax.send_is_per_peer},
                                         std::pair{&op.recv, syntax.recv_is_per_peer}}) {
    if (!is_per_peer || !fields.is_uneven(*ref)) continue;
    fields.reader().problems.error(
        fields.map().node(), "a buffer with a part for each rank is one of a family of equal size",
        "nccl_all_to_all_v takes a buffer for each rank");
  }
  const bool is_in_place = op.send == op.recv;
  if (sent != got && !is_in_place && !fields.map().has("size") && fields.is_sound()) {
    fields.reader().problems.error(
        fields.map().node(),
        fmt::format("the collective needs 'size': for each rank the {} holds {} B, the {} {} B",
                    keys.send_name, sent, keys.recv_name, got));
  }
  op.size = fields.typed_size_up_to({std::min(sent, got) / element * element},
                                    "what the buffers hold for each rank", op.type);
  return op;
}

TransferData read_transfer_data(OpFields& fields) {
  TransferData data{fields.buffer("buffer", kDeviceMemory), {}, fields.required_type()};
  data.size = fields.typed_size_up_to(fields.buffer_of(data.buffer).size, "the buffer", data.type);
  return data;
}

namespace {

template <CollectiveKind kKind>
OpKind read_collective(OpFields& fields) {
  constexpr BufferKeys kKeys{"send_buffer", "recv_buffer", "send buffer", "receive buffer"};
  const CommRef comm = fields.comm();
  StreamRef stream = stream_beside(fields, comm);
  NcclCollective op = read_collective_data(fields, kKind, comm, kKeys);
  op.stream = std::move(stream);
  if (has_root(kKind)) op.root = fields.number("root", 0, rank_count(fields, comm) - 1);
  return op;
}

/// Send and Recv have the same keys.
template <class Transfer>
OpKind read_transfer(OpFields& fields) {
  CommRef comm = fields.comm();
  StreamRef stream = stream_beside(fields, comm);
  TransferData data = read_transfer_data(fields);
  Expr peer = fields.number("peer", 0, rank_count(fields, comm) - 1);
  return Transfer{std::move(comm),      std::move(stream), std::move(data.buffer),
                  std::move(data.size), data.type,         std::move(peer)};
}

CommRef initialised_by_op(OpFields& fields) {
  CommRef comm = fields.comm();
  if (fields.is_sound() && fields.communicator_of(comm).init != CommInit::Op) {
    fields.reader().problems.error(
        fields.where("comm"),
        fmt::format("communicator '{}' is initialised before the run", fields.where("comm").text),
        "declare it with init: op");
  }
  return comm;
}

/// Both have the same keys, and the buffer lies on the communicator's device.
template <class Registration>
OpKind read_registration(OpFields& fields) {
  return Registration{fields.comm(), fields.buffer("buffer", kDeviceMemory)};
}

constexpr std::string_view kReducing =
    "comm [stream] (buffer | send_buffer recv_buffer) [size] type [op]";
constexpr std::string_view kMoving = "comm [stream] (buffer | send_buffer recv_buffer) [size] type";
constexpr std::string_view kRooted =
    "comm [stream] (buffer | send_buffer recv_buffer) [size] type root";
constexpr std::string_view kTransfer = "comm [stream] buffer [size] type peer";

constexpr std::array kNcclOps{
    OpSyntax{"nccl_comm_init", "comm", "ncclCommInitRank in the run",
             [](OpFields& f) -> OpKind { return NcclCommInit{initialised_by_op(f)}; }},
    OpSyntax{"nccl_comm_destroy", "comm", "ncclCommDestroy",
             [](OpFields& f) -> OpKind { return NcclCommDestroy{f.comm()}; }},
    OpSyntax{"nccl_comm_register", "comm buffer", "ncclCommRegister: peers may access it directly",
             read_registration<NcclCommRegister>},
    OpSyntax{"nccl_comm_deregister", "comm buffer", "ncclCommDeregister",
             read_registration<NcclCommDeregister>},
    OpSyntax{"nccl_all_reduce", kReducing, "every rank gets the sum", read_collective<AllReduce>},
    OpSyntax{"nccl_broadcast", kRooted, "every rank gets the root's data",
             read_collective<Broadcast>},
    OpSyntax{"nccl_reduce",
             "comm [stream] (buffer | send_buffer recv_buffer) [size] type [op] root",
             "the root gets the sum", read_collective<Reduce>},
    OpSyntax{"nccl_all_gather", kMoving, "every rank gets every rank's part",
             read_collective<AllGather>},
    OpSyntax{"nccl_reduce_scatter", kReducing, "every rank gets its part of the sum",
             read_collective<ReduceScatter>},
    OpSyntax{"nccl_all_to_all", kMoving, "every rank sends a part to every rank",
             read_collective<AllToAll>},
    OpSyntax{"nccl_gather", kRooted, "the root gets every rank's part", read_collective<Gather>},
    OpSyntax{"nccl_scatter", kRooted, "every rank gets its part of the root's data",
             read_collective<Scatter>},
    OpSyntax{"nccl_send", kTransfer, "sends to one rank", read_transfer<NcclSend>},
    OpSyntax{"nccl_recv", kTransfer, "receives from one rank", read_transfer<NcclRecv>},
};

}  // namespace

std::span<const OpSyntax> nccl_ops() { return kNcclOps; }

}  // namespace foretrace
