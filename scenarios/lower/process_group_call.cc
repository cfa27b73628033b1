#include "scenarios/lower/process_group_call.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretrace {
namespace {

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

}  // namespace

GroupCall read_call(OpFields& fields, const Lowering& out) {
  GroupCall call{};
  call.comm = fields.group();
  ProcessGroup& group = fields.group_of(call.comm);
  call.current = stream_beside(fields, call.comm);
  const Expr device = device_index(fields.reader(), call.comm);
  call.internal = {StreamId{group.first_stream}, device};
  const std::uint32_t ready =
      first_event(fields, out, group, fields.communicator_of(call.comm).name);
  call.ready = {EventId{ready}, device};
  call.done = {EventId{ready + group.devices}, device};
  return call;
}

void give_work(OpFields& fields, GroupCall& call) {
  call.is_async = true;
  call.done = fields.work();
  fields.reader().works_given.insert(work_name(fields.where("work")));
}

void read_async(OpFields& fields, GroupCall& call) {
  MapReader& map = fields.map();
  const bool is_async = fields.flag("async");
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
  fields.reader().problems.error(fields.where("async"),
                                 "async: true needs 'work': a name for work_wait");
}

Expr read_rank(OpFields& fields, const GroupCall& call, std::string_view nccls,
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
  if (fields.group_of(call.comm).is_split && map.has(torchs)) {
    fields.reader().problems.error(
        fields.where(torchs),
        fmt::format("'{}' counts ranks of the whole program, of which each part has others", torchs),
        fmt::format("'{}' is the rank within the group", nccls));
  }
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

void begin_call(bool initialises, const GroupCall& call, Lowering& out) {
  if (initialises) out.add(NcclCommInit{call.comm, true});
  out.add(EventRecord{call.ready, call.current});
  out.add(StreamWaitEvent{call.internal, call.ready});
}

void end_call(const GroupCall& call, Lowering& out) {
  out.add(EventRecord{call.done, call.internal});
  if (!call.is_async) out.add(StreamWaitEvent{call.current, call.done});
}

}  // namespace foretrace
