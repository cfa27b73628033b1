#include "scenarios/lower/process_group_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretrace {
GroupCall read_call(OpFields& fields, const Lowering& out) {
  const CommRef comm = fields.group();
  StreamRef current = stream_beside(fields, comm);
  return call_of_group(fields.program(), fields.group_of(comm), fields.communicator_of(comm).name,
                       out.thread(), comm, device_index(fields.reader(), comm), std::move(current));
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
        fmt::format("'{}' counts ranks of the whole program, of which each part has others",
                    torchs),
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

}  // namespace foretrace
