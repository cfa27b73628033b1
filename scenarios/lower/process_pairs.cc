// Pairs of ranks of a process group that transfer outside of a batch.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/lower/process_group_call.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostLookedAt = std::uint64_t{1} << 20;  // iterations of one transfer

Expr combined(const Expr& a, Expr::Op op, const Expr& b) {
  const auto code_of = [](const Expr& expr) {
    return expr.is_constant()
               ? std::vector<Expr::Instruction>{{Expr::Op::Constant, expr.constant()}}
               : expr.code();
  };
  std::vector<Expr::Instruction> code = code_of(a);
  for (const Expr::Instruction& instruction : code_of(b)) code.push_back(instruction);
  code.push_back({op});
  return Expr::from_postfix(std::move(code)).value_or(Expr{});
}

/// Where the ranks of a group are: processes, or the devices of the only one.
struct Places {
  std::uint32_t count;
  Expr index;        ///< of the calling rank
  std::int64_t first;  ///< that of rank 0
};

Places places_of(const Program& program, const ProcessGroup& group, const GroupCall& call) {
  const auto first = std::int64_t{group.ranks.front()};
  if (program.processes == 1) return {program.devices, call.comm.index, first};
  return {program.processes, *Expr::from_postfix({{Expr::Op::Variable, 0}}), first};
}

/// A handle for each distance to another rank and each place, and a stream likewise (of each device
/// of a lone process).
void reserve(Program& program, ProcessGroup& group, const std::string& name,
             std::uint32_t places) {
  const auto distances = static_cast<std::uint32_t>(2 * group.ranks.size() - 1);
  group.first_pair_handle = static_cast<std::uint32_t>(program.comms.size());
  group.first_pair_stream = static_cast<std::uint32_t>(program.streams.size());
  const auto of_pair = static_cast<std::uint32_t>(program.communicators.size());  // the first one
  for (std::uint32_t d = 0; d < distances; ++d) {
    for (std::uint32_t place = 0; place < places; ++place) {
      program.comms.push_back({of_pair, program.processes == 1 ? place : 0});
    }
    for (std::uint32_t device = 0; device < group.devices; ++device) {
      program.streams.push_back({fmt::format("{}.pair_stream({}, {})", name, d, device), device,
                                 StreamKind::NonBlocking, 0});
    }
  }
}

std::uint32_t communicator_of(Program& program, ProcessGroup& group, const std::string& name,
                              std::int64_t rank, std::int64_t peer) {
  const auto [at, is_new] =
      group.pairs.try_emplace(std::minmax(rank, peer),
                              static_cast<std::uint32_t>(program.communicators.size()));
  if (!is_new) return at->second;
  const auto [low, high] = at->first;
  Communicator pair{fmt::format("{}.pair({}, {})", name, low, high), CommInit::Rank, {}};
  if (program.processes == 1) pair.init = CommInit::All;
  if (group.initialises) pair.init = CommInit::Op;
  for (const std::int64_t one : low == high ? std::vector{low} : std::vector{low, high}) {
    const std::uint32_t place = group.ranks[static_cast<std::size_t>(one)];
    pair.members.push_back(program.processes == 1 ? RankPlace{0, place} : RankPlace{place, 0});
  }
  program.communicators.push_back(std::move(pair));
  return at->second;
}

}  // namespace

GroupCall call_of_pair(OpFields& fields, const GroupCall& call, Expr& peer) {
  ProcessGroup& group = fields.group_of(call.comm);
  const auto ranks = static_cast<std::int64_t>(group.ranks.size());
  const bool in_a_row = ranks > 0 && group.ranks.back() - group.ranks.front() + 1 == ranks;
  if (!group.is_lazy || group.is_split || ranks <= 2 || ranks > kMostRanksInPairs || !in_a_row ||
      !fields.is_sound()) {
    return call;
  }
  Program& program = fields.program();
  const std::string name = fields.communicator_of(call.comm).name;
  const Places places = places_of(program, group, call);
  if (!group.first_pair_handle) reserve(program, group, name, places.count);
  for_each_assignment(fields.reader().domain, {&peer, &places.index}, kMostLookedAt,
                      [&](Variables v) {
                        const std::int64_t place = places.index.eval(v);
                        const std::int64_t rank = place - places.first;
                        const std::int64_t other = peer.eval(v);
                        if (rank < 0 || rank >= ranks) return true;
                        const std::int64_t distance = other - rank + ranks - 1;
                        const std::int64_t handle = distance * places.count + place;
                        program.comms[*group.first_pair_handle + static_cast<std::size_t>(handle)]
                            .communicator = communicator_of(program, group, name, rank, other);
                        return true;
                      });
  if (group.pairs.empty()) communicator_of(program, group, name, 0, 1);  // handles name one
  const Expr rank = combined(places.index, Expr::Op::Sub, Expr{places.first});
  const Expr distance =
      combined(combined(peer, Expr::Op::Sub, rank), Expr::Op::Add, Expr{ranks - 1});
  const auto at = [&](std::int64_t width, const Expr& index) {
    return combined(combined(distance, Expr::Op::Mul, Expr{width}), Expr::Op::Add, index);
  };
  GroupCall pair = call;
  pair.comm = {CommId{*group.first_pair_handle}, at(places.count, places.index)};
  pair.internal = {StreamId{group.first_pair_stream}, at(group.devices, call.comm.index)};
  peer = combined(rank, Expr::Op::Less, peer);
  return pair;
}

}  // namespace foretrace
