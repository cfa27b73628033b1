// torch.distributed over NCCL, as PyTorch 2's ProcessGroupNCCL does it: the group's stream waits
// for the current one, NCCL runs on the group's stream, and a work is an event recorded behind it.
// Who waits for that event is the difference between async: false, work_wait and a timeout.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/lowering.h"
#include "scenarios/nccl_fields.h"

namespace foretrace {
namespace {

using enum CollectiveKind;

constexpr std::int64_t kScalarBytes = 4;
constexpr std::int64_t kDefaultPoll = 1'000'000'000;  // 1 ms in ps: kSynchronizeBusyWaitMillis

/// A call of a process group: its handle, and the streams and events between which it runs.
struct Call {
  CommRef comm;
  StreamRef current, internal;
  EventRef ready, done;
  bool is_async = false;
};

/// The hidden events of one host thread: `ready` on its current stream, `done` for calls that give
/// no work. They are recorded anew by every call, which is fine: each wait follows its record.
std::uint32_t first_event(OpFields& fields, const Lowering& out, ProcessGroup& group,
                          const std::string& name) {
  auto& events = fields.program().events;
  const auto [found, is_new] =
      group.events.emplace(std::string{out.thread()}, static_cast<std::uint32_t>(events.size()));
  if (is_new) {
    for (const std::string_view role : {"ready", "done"}) {
      for (std::uint32_t device = 0; device < group.devices; ++device) {
        events.push_back(
            {fmt::format("{}.{}({}, {})", name, role, out.thread(), device), device, false});
      }
    }
  }
  return found->second;
}

/// Reads `group` and `stream`.
Call read_call(OpFields& fields, const Lowering& out) {
  Call call{};
  call.comm = fields.group();
  ProcessGroup& group = fields.group_of(call.comm);
  call.current = stream_beside(fields, call.comm);
  call.internal = {StreamId{group.first_stream}, call.comm.index};
  const std::uint32_t ready =
      first_event(fields, out, group, fields.communicator_of(call.comm).name);
  call.ready = {EventId{ready}, call.comm.index};
  call.done = {EventId{ready + group.devices}, call.comm.index};
  return call;
}

void give_work(OpFields& fields, Call& call) {
  call.is_async = true;
  call.done = fields.work();
  fields.reader().works_given.insert(work_name(fields.where("work")));
}

/// `async` and `work`, which belong together.
void read_async(OpFields& fields, Call& call) {
  MapReader& map = fields.map();
  const YamlNode* async = map.optional("async");
  const bool is_async =
      async != nullptr && read_choice<bool>(fields.reader(), *async, "value of async",
                                            {{"true", true}, {"false", false}});
  if (map.has("work")) {
    give_work(fields, call);
    if (!is_async) {
      fields.reader().problems.error(fields.where("work"),
                                     "only an asynchronous operation gives a work",
                                     "add async: true, or leave 'work' out");
    }
    return;
  }
  static_cast<void>(map.optional("work"));
  if (!is_async) return;
  fields.reader().problems.error(*async, "async: true needs 'work': a name for work_wait");
}

/// The rank within the group: under NCCL's word for it, or as torch's, which is the rank in the
/// whole program.
Expr read_rank(OpFields& fields, const Call& call, std::string_view nccls,
               std::string_view torchs) {
  MapReader& map = fields.map();
  const std::int64_t last = rank_count(fields, call.comm) - 1;
  if (map.has(nccls)) {
    if (const YamlNode* other = map.optional(torchs)) {
      fields.reader().problems.error(*other,
                                     fmt::format("either '{}' or '{}', not both", nccls, torchs));
    }
    return fields.number(nccls, 0, last);
  }
  static_cast<void>(map.optional(nccls));
  const auto& ranks = fields.group_of(call.comm).ranks;
  if (ranks.empty() || ranks.back() + 1 == ranks.size()) return fields.number(torchs, 0, last);

  Expr rank = fields.number(torchs, 0, std::int64_t{ranks.back()});
  if (!map.has(torchs)) return {};
  const auto found =
      std::ranges::find(ranks, rank.constant(), [](std::uint32_t r) { return std::int64_t{r}; });
  if (!rank.is_constant()) {
    fields.reader().problems.error(
        fields.where(torchs),
        fmt::format("'{}' must be the same rank everywhere in a group of "
                    "some ranks only",
                    torchs),
        fmt::format("'{}' is the rank within the group", nccls));
  } else if (found == ranks.end() && fields.is_sound()) {
    fields.reader().problems.error(fields.where(torchs),
                                   fmt::format("rank {} is not in this group", rank.constant()));
  }
  return Expr{found - ranks.begin()};
}

// ---- lowering -----------------------------------------------------------------------------------

void begin(OpFields& fields, const Call& call, Lowering& out) {
  if (fields.group_of(call.comm).initialises) out.add(NcclCommInit{call.comm, true});
  out.add(EventRecord{call.ready, call.current});
  out.add(StreamWaitEvent{call.internal, call.ready});
}

void end(const Call& call, Lowering& out) {
  out.add(EventRecord{call.done, call.internal});
  if (!call.is_async) out.add(StreamWaitEvent{call.current, call.done});
}

void issue(OpFields& fields, const Call& call, OpKind kind, Lowering& out) {
  begin(fields, call, out);
  out.add(std::move(kind), out.label());
  end(call, out);
}

template <CollectiveKind kKind>
void read_collective(OpFields& fields, Lowering& out) {
  constexpr BufferKeys kKeys{"input", "output", "input", "output"};
  constexpr bool kToAll = kKind == Broadcast || kKind == Scatter;
  Call call = read_call(fields, out);
  NcclCollective op = read_collective_data(fields, kKind, call.comm, kKeys);
  op.stream = call.internal;
  if (has_root(kKind)) op.root = read_rank(fields, call, "root", kToAll ? "src" : "dst");
  read_async(fields, call);
  issue(fields, call, std::move(op), out);
}

/// Buffer, size, type and peer of NcclSend or NcclRecv.
template <class Transfer>
Transfer read_transfer(OpFields& fields, const Call& call) {
  TransferData data = read_transfer_data(fields);
  constexpr bool kSends = std::is_same_v<Transfer, NcclSend>;
  return {call.comm,
          call.internal,
          std::move(data.buffer),
          std::move(data.size),
          data.type,
          read_rank(fields, call, "peer", kSends ? "dst" : "src")};
}

template <class Transfer>
void read_sync_transfer(OpFields& fields, Lowering& out) {
  const Call call = read_call(fields, out);
  issue(fields, call, read_transfer<Transfer>(fields, call), out);
}

template <class Transfer>
void read_async_transfer(OpFields& fields, Lowering& out) {
  Call call = read_call(fields, out);
  give_work(fields, call);
  issue(fields, call, read_transfer<Transfer>(fields, call), out);
}

/// One of the list in a batch: isend or irecv, without what the batch says for all.
void read_batched(OpFields& batch, const YamlNode& node, const Call& call, Lowering& out,
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
  Lowering inner{batch.program(), out.thread(), {{}, {}, key.line, key.column, {}}, group};
  if (key.text == "isend") {
    inner.add(read_transfer<NcclSend>(fields, call), std::move(label));
  } else {
    inner.add(read_transfer<NcclRecv>(fields, call), std::move(label));
  }
  map.finish();
}

void read_batch(OpFields& fields, Lowering& out) {
  Call call = read_call(fields, out);
  give_work(fields, call);
  begin(fields, call, out);
  const YamlNode* ops = fields.map().required("ops");
  if (ops != nullptr && (ops->kind != YamlNode::Kind::Sequence || ops->items.empty())) {
    fields.reader().problems.error(*ops, "'ops' is a list of isend and irecv");
  }
  Block& group = out.add_nccl_group();
  if (ops != nullptr) {
    for (const YamlNode& item : ops->items) read_batched(fields, item, call, out, group);
  }
  end(call, out);
}

/// One element for every rank to sum, which no file can name.
BufferRef barrier_buffer(OpFields& fields, const Call& call) {
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
  return {BufferId{*group.first_barrier_buffer}, call.comm.index};
}

/// The current stream waits as for any collective, and then the host for the stream.
void read_barrier(OpFields& fields, Lowering& out) {
  const Call call = read_call(fields, out);
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

// ---- works --------------------------------------------------------------------------------------

EventRef work_waited_for(OpFields& fields) {
  if (fields.map().has("work")) {
    fields.reader().works_waited_for.push_back(fields.where("work"));
  }
  return fields.work();
}

/// Without an id the call is named after its work.
std::string label_of_wait(OpFields& fields, const Lowering& out) {
  return out.label().empty() ? work_name(fields.where("work")) : out.label();
}

void read_work_wait(OpFields& fields, Lowering& out) {
  MapReader& map = fields.map();
  const EventRef work = work_waited_for(fields);
  std::string label = label_of_wait(fields, out);
  const YamlNode* poll = map.optional("poll");
  const YamlNode* stream = map.has("stream") ? &fields.where("stream") : nullptr;
  StreamRef current = fields.stream();
  if (!map.has("timeout")) {
    static_cast<void>(map.optional("timeout"));
    if (poll != nullptr) {
      fields.reader().problems.error(*poll, "'poll' belongs to a wait with a timeout",
                                     "without one the stream waits, and the host does not");
    }
    out.add(StreamWaitEvent{std::move(current), work}, std::move(label));
    return;
  }
  if (stream != nullptr) {
    fields.reader().problems.error(*stream, "with a timeout the host waits, and no stream");
  }
  DurationExpr every{Expr{kDefaultPoll}};
  if (poll != nullptr) every = fields.duration("poll");
  out.add(EventWaitFor{work, fields.duration("timeout"), std::move(every)}, std::move(label));
}

void read_work_is_completed(OpFields& fields, Lowering& out) {
  out.add(EventQuery{work_waited_for(fields)}, out.label());
}

// ---- reading a value ----------------------------------------------------------------------------

/// Where this thread's scalars go; a name that no file can spell keeps it apart.
BufferRef scalar_buffer(Program& program, const Lowering& out) {
  auto& buffers = program.buffers;
  const std::string name = fmt::format("read_scalar({})", out.thread());
  const auto found = std::ranges::find(buffers, name, &Buffer::name);
  const auto id = static_cast<std::uint32_t>(found - buffers.begin());
  if (found == buffers.end()) {
    buffers.push_back({name, MemoryKind::Pageable, 0, {kScalarBytes}, Contents::Zeros, false});
  }
  return {{id}, {}};
}

/// tensor.item(), print(t): four bytes to pageable memory, then wait for the stream.
void read_scalar(OpFields& fields, Lowering& out) {
  const StreamRef stream = fields.stream();
  const BufferRef src = fields.buffer("src", kDeviceMemory);
  fields.require_capacity(src, Expr{kScalarBytes}, "src");
  const BufferRef dst = scalar_buffer(fields.program(), out);
  out.add(MemcpyAsync{stream, src, dst, {}, {}, {Expr{kScalarBytes}}}, out.label());
  out.add(StreamSynchronize{stream}, out.label());
}

// ---- the table ----------------------------------------------------------------------------------

constexpr std::string_view kReducing =
    "group [stream] (buffer | input output) [size] type [op] [async] [work]";
constexpr std::string_view kMoving =
    "group [stream] (buffer | input output) [size] type [async] [work]";
constexpr std::string_view kFromRoot =
    "group [stream] (buffer | input output) [size] type (root | src) [async] [work]";
constexpr std::string_view kToRoot =
    "group [stream] (buffer | input output) [size] type (root | dst) [async] [work]";

constexpr std::array kOps{
    LoweredSyntax{"all_reduce", kReducing, "torch: every rank gets the sum",
                  read_collective<AllReduce>},
    LoweredSyntax{"broadcast", kFromRoot, "torch: every rank gets the root's data",
                  read_collective<Broadcast>},
    LoweredSyntax{
        "reduce",
        "group [stream] (buffer | input output) [size] type [op] (root | dst) [async] [work]",
        "torch: the root gets the sum", read_collective<Reduce>},
    LoweredSyntax{"all_gather", kMoving, "torch: every rank gets every rank's part",
                  read_collective<AllGather>},
    LoweredSyntax{"reduce_scatter", kReducing, "torch: every rank gets its part of the sum",
                  read_collective<ReduceScatter>},
    LoweredSyntax{"all_to_all", kMoving, "torch: every rank sends a part to every rank",
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
    LoweredSyntax{"work_wait", "work [stream] [timeout] [poll]",
                  "torch: the current stream waits for a work; with a timeout the host does",
                  read_work_wait},
    LoweredSyntax{"work_is_completed", "work", "torch: asks whether a work is done",
                  read_work_is_completed},
    LoweredSyntax{"read_scalar", "src [stream]",
                  "tensor.item(): a copy of 4 B to pageable memory and stream_synchronize",
                  read_scalar},
};

}  // namespace

std::span<const LoweredSyntax> torch_ops() { return kOps; }

}  // namespace foretrace
