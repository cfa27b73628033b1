#include "scenarios/captured/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenarios/base/text/errors.h"

namespace foretrace::captured {
namespace {

using Ranks = std::vector<std::int64_t>;

/// The captured ranks of a communicator; without them, neighbours.
Ranks ranks_of(const Record& record, const Communicator& comm) {
  if (static_cast<std::int64_t>(comm.ranks.size()) == comm.size) return comm.ranks;
  Ranks ranks;
  const std::int64_t first = record.rank - comm.rank;
  for (std::int64_t i = 0; i < comm.size; ++i) ranks.push_back(first + i);
  return ranks;
}

/// All groups of the world that have the captured one's form: that one, then the others in the
/// order of their first ranks.
std::vector<Ranks> tiles(const Record& record, const Ranks& captured, std::int64_t world) {
  std::vector<Ranks> found{captured};
  std::set<std::int64_t> taken{captured.begin(), captured.end()};
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (taken.contains(rank)) continue;
    Ranks group;
    for (const std::int64_t member : captured) {
      const std::int64_t moved = member - captured.front() + rank;
      const bool free = moved >= 0 && moved < world && taken.insert(moved).second;
      if (!free) {
        throw UsageError{
            fmt::format("{}: error: the ranks of a communicator ({} of {}) cannot be repeated over "
                        "{} ranks: capture "
                        "these ranks too (--ranks)",
                        record.file, captured.size(), captured.front(), world)};
      }
      group.push_back(moved);
    }
    found.push_back(std::move(group));
  }
  return found;
}

}  // namespace

Groups groups_of(const CapturedStep& step) {
  Groups groups;
  for (const RankRecord& one : step.ranks) {
    std::map<std::int64_t, std::map<std::uint32_t, std::string>> names;  // by rank
    for (const std::int64_t rank : one.stands_for) names[rank];
    std::map<Ranks, int> seen;
    for (const auto& [id, comm] : one.record.comms) {
      const Ranks captured = ranks_of(one.record, comm);
      const int twin = seen[captured]++;  // several communicators of the same ranks
      const bool is_alone = one.stands_for.size() == 1;
      for (const Ranks& group :
           is_alone ? std::vector<Ranks>{captured} : tiles(one.record, captured, step.world)) {
        std::string name =
            comm.size == step.world ? "world" : fmt::format("ranks_{}", fmt::join(group, "_"));
        if (group.size() > 8)
          name = comm.size == step.world ? "world"
                                         : fmt::format("ranks_{}_by_{}_of_{}", group.front(),
                                                       group[1] - group[0], group.size());
        if (twin > 0) name += fmt::format("_again{}", twin);
        bool is_ours = false;
        for (const std::int64_t rank : group) {
          if (!names.contains(rank)) continue;
          names[rank][id] = name;
          is_ours = true;
        }
        if (is_ours) groups.members[name] = group;
      }
    }
    std::map<std::map<std::uint32_t, std::string>, std::vector<std::int64_t>> alike;
    for (const auto& [rank, mine] : names) alike[mine].push_back(rank);
    for (auto& [mine, ranks] : alike)
      groups.parties.push_back({&one.record, ranks, one.stands_for.size() > 1, mine});
  }
  return groups;
}

}  // namespace foretrace::captured
