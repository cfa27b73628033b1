#include "scenarios/lower/process_group.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretrace {
namespace {

/// The hidden events of one host thread: `ready` on its current stream, `done` for calls that give
/// no work. They are recorded anew by every call, which is fine: each wait follows its record.
std::uint32_t first_event(Program& program, ProcessGroup& group, std::string_view name,
                          std::string_view thread) {
  auto& events = program.events;
  const auto [found, is_new] =
      group.events.emplace(std::string{thread}, static_cast<std::uint32_t>(events.size()));
  if (is_new) {
    for (const std::string_view role : {"ready", "done"}) {
      for (std::uint32_t device = 0; device < group.devices; ++device) {
        events.push_back({fmt::format("{}.{}({}, {})", name, role, thread, device), device, false});
      }
    }
  }
  return found->second;
}

void add_streams(Program& program, const std::string& name, ProcessGroup& group) {
  group.first_stream = static_cast<std::uint32_t>(program.streams.size());
  for (std::uint32_t device = 0; device < group.devices; ++device) {
    program.streams.push_back(
        {fmt::format("{}.stream({})", name, device), device, StreamKind::NonBlocking, 0});
  }
}

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

}  // namespace

AddedGroup add_process_group(Program& program, const std::string& name,
                             const std::vector<std::vector<std::uint32_t>>& parts, bool is_split,
                             bool is_lazy) {
  const bool one_process = program.processes == 1;
  ProcessGroup group;
  group.ranks = parts.front();
  group.is_split = is_split;
  group.is_lazy = is_lazy;
  group.initialises = is_lazy && program.warmup == 0;
  group.devices = one_process ? program.devices : 1;
  add_streams(program, name, group);
  const CommId first{static_cast<std::uint32_t>(program.comms.size())};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Communicator one{is_split ? fmt::format("{}({})", name, part) : name, CommInit::Rank, {}};
    if (one_process) one.init = CommInit::All;
    if (group.initialises) one.init = CommInit::Op;
    for (const std::uint32_t rank : parts[part]) {
      one.members.push_back(one_process ? RankPlace{0, rank} : RankPlace{rank, 0});
    }
    for (std::uint32_t device = 0; device < program.devices; ++device) {
      program.comms.push_back({static_cast<std::uint32_t>(program.communicators.size()), device});
    }
    program.communicators.push_back(std::move(one));
  }
  return {first, std::move(group)};
}

GroupCall call_of_group(Program& program, ProcessGroup& group, std::string_view name,
                        std::string_view thread, CommRef comm, Expr device, StreamRef current) {
  const std::uint32_t ready = first_event(program, group, name, thread);
  return {.comm = std::move(comm),
          .current = std::move(current),
          .internal = {StreamId{group.first_stream}, device},
          .ready = {EventId{ready}, device},
          .done = {EventId{ready + group.devices}, device}};
}

void begin_call(bool initialises, const GroupCall& call, Lowering& out) {
  if (initialises) out.add(NcclCommInit{call.comm, true});
  out.add(EventRecord{call.ready, call.current});
  out.add(StreamWaitEvent{call.internal, call.ready});
}

void end_call(const GroupCall& call, Lowering& out) {
  out.add(EventRecord{call.done, call.internal});
  if (!call.is_async) out.add(StreamWaitEvent{call.current, call.done});
}

void add_read_scalar(Program& program, const StreamRef& stream, const BufferRef& src,
                     Lowering& out) {
  const BufferRef dst = scalar_buffer(program, out);
  out.add(MemcpyAsync{stream, src, dst, {}, {}, {Expr{kScalarBytes}}}, out.label());
  out.add(StreamSynchronize{stream}, out.label());
}

}  // namespace foretrace
