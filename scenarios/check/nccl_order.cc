// NCCL operations that wait for each other in vain. Every host thread's calls are listed rank by
// rank, as far as kMostCalls allows, and compared: ranks must call the collectives of a
// communicator in one order, and each send needs its receive. Who waits for whom at run time, with
// streams and host threads in between, is what the executors find out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostCalls = 200'000;   // of all threads together
constexpr std::uint64_t kFewestCallsEach = 64;  // of one thread of one process

struct Call {
  const Op* op{};
  std::int64_t size{};
  std::int64_t root{};
};
/// What is around a call. OfOneCall: the group that nccl_all_to_all_v reads as, and no other.
enum class InGroup : std::uint8_t { No, OfOneCall, Yes };

InGroup in_group(Around around) {
  auto found = InGroup::No;
  for (const Op* block : around) {
    if (!std::holds_alternative<NcclGroup>(block->kind)) continue;
    if (!block->lowered) return InGroup::Yes;
    found = InGroup::OfOneCall;
  }
  return found;
}

/// The calls of a graph, which it makes whenever it is launched.
struct Captured {
  struct OneCall {
    const Op* op;
    std::vector<std::int64_t> variables;
    InGroup in_group;
  };
  const Op* capture{};
  std::vector<std::int64_t> variables;  ///< where it was captured
  std::vector<OneCall> calls;
};

struct Collectives {
  std::vector<Call> calls;
  std::set<std::uint32_t> threads;  ///< with two, their order is not written in the file
};
struct Transfers {
  std::vector<Call> sends, recvs;
};

using RankKey = std::pair<std::uint32_t, std::uint32_t>;                // communicator, rank
using PairKey = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;  // communicator, from, to

/// What every rank calls, in its order.
class CallLister {
 public:
  explicit CallLister(const Program& program) : program_{program} {
    for (const Communicator& communicator : program.communicators) {
      auto& ranks = ranks_.emplace_back();
      for (std::uint32_t rank = 0; rank < communicator.members.size(); ++rank) {
        ranks.emplace(place_number(communicator.members[rank]), rank);
      }
    }
    std::uint64_t threads = 1;
    for (const HostThread& thread : program.threads) threads += thread.processes.size();
    calls_each_ = std::max(kFewestCallsEach, kMostCalls / threads);
  }

  void list_all() {
    for (thread_ = 0; thread_ < program_.threads.size(); ++thread_) {
      const HostThread& thread = program_.threads[thread_];
      if (!calls_nccl(thread.ops)) continue;
      for (const std::uint32_t process : thread.processes) {
        calls_left_ = calls_each_;
        ExecutionWalk{}.run(
            thread.ops, process, [this](const Block& block) { return calls_nccl(block); },
            [this](const Op& op, Variables variables, Around around) {
              return list_call(op, variables, around);
            });
      }
    }
  }

  std::map<RankKey, Collectives> collectives;
  std::map<PairKey, Transfers> transfers;
  /// One thread's collectives on several ranks outside of a group: (communicator, thread, process).
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>,
           std::map<std::uint32_t, const Op*>>
      ungrouped;
  bool is_complete = true;

 private:
  std::uint64_t place_number(RankPlace place) const {
    return std::uint64_t{place.process} * program_.devices + place.device;
  }

  bool calls_nccl(const Block& block) {
    const auto known = calls_nccl_.find(&block);
    if (known != calls_nccl_.end()) return known->second;
    const bool found = std::ranges::any_of(block, [this](const Op& op) {
      const Block* inner = block_of(op.kind);
      const auto* repeat = std::get_if<Repeat>(&op.kind);
      if (repeat != nullptr && repeat->times == 0) return false;
      if (std::holds_alternative<GraphLaunch>(op.kind)) return true;
      return inner != nullptr ? calls_nccl(*inner) : nccl_comm(op.kind) != nullptr;
    });
    calls_nccl_.emplace(&block, found);
    return found;
  }

  bool list_call(const Op& op, Variables variables, Around around) {
    if (const auto* launch = std::get_if<GraphLaunch>(&op.kind)) {
      return list_launch(*launch, variables);
    }
    const auto capture = std::ranges::find_if(
        around, [](const Op* block) { return std::holds_alternative<GraphCapture>(block->kind); });
    if (capture == around.end()) return list_call(op, variables, in_group(around));
    if (op_facts(op.kind).comm == nullptr) return true;
    const auto blocks = static_cast<std::size_t>(capture - around.begin());
    const Variables known = variables.first(1 + loops_of(around.first(blocks)).size());
    const std::vector<std::int64_t> outside(known.begin(), known.end());
    const GraphId graph = std::get<GraphCapture>((*capture)->kind).graph.resolve(outside);
    Captured& captured = captured_[{outside[0], graph.value}];
    if (captured.capture != *capture || captured.variables != outside) {
      captured = {*capture, outside, {}};
    }
    captured.calls.push_back({&op, {variables.begin(), variables.end()}, in_group(around)});
    return true;
  }

  bool list_launch(const GraphLaunch& launch, Variables variables) {
    const auto captured = captured_.find({variables[0], launch.graph.resolve(variables).value});
    if (captured == captured_.end()) {  // of no calls, or by a thread that is listed later
      is_complete = is_complete && !captures_nccl();
      return true;
    }
    return std::ranges::all_of(captured->second.calls, [&](const Captured::OneCall& call) {
      return list_call(*call.op, call.variables, call.in_group);
    });
  }

  bool captures_nccl() {
    return any_op(program_, [this](const Op& op) {
      const auto* capture = std::get_if<GraphCapture>(&op.kind);
      return capture != nullptr && calls_nccl(capture->ops);
    });
  }

  /// A call beyond the limit makes the list incomplete; the thread's others are not looked at.
  bool list_call(const Op& op, Variables variables, InGroup group) {
    const OpFacts facts = op_facts(op.kind);
    if (facts.comm == nullptr) return true;
    if (calls_left_ == 0) {
      is_complete = false;
      return false;
    }
    --calls_left_;
    const CommHandle& handle = program_.comms[facts.comm->resolve(variables).value];
    const auto& ranks = ranks_[handle.communicator];
    const auto process = static_cast<std::uint32_t>(variables[0]);
    const auto found = ranks.find(place_number({process, handle.device}));
    if (found == ranks.end()) return true;
    const std::uint32_t rank = found->second;

    const bool is_collective = std::holds_alternative<NcclCollective>(op.kind);
    if (group == InGroup::OfOneCall || (group == InGroup::No && is_collective)) {
      ungrouped[{handle.communicator, thread_, variables[0]}].emplace(rank, &op);
    }
    if (const auto* collective = std::get_if<NcclCollective>(&op.kind)) {
      auto& mine = collectives[{handle.communicator, rank}];
      mine.threads.insert(thread_);
      mine.calls.push_back(
          {&op, collective->size.expr.eval(variables), collective->root.eval(variables)});
    } else if (const auto* send = std::get_if<NcclSend>(&op.kind)) {
      transfers[{handle.communicator, rank, send->peer.eval(variables)}].sends.push_back(
          {&op, send->size.expr.eval(variables), 0});
    } else if (const auto* recv = std::get_if<NcclRecv>(&op.kind)) {
      transfers[{handle.communicator, recv->peer.eval(variables), rank}].recvs.push_back(
          {&op, recv->size.expr.eval(variables), 0});
    }
    return true;
  }

  const Program& program_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> ranks_;  ///< of each communicator
  std::unordered_map<const Block*, bool> calls_nccl_;
  /// By process and graph.
  std::map<std::pair<std::int64_t, std::uint32_t>, Captured> captured_;
  std::uint64_t calls_each_ = 0;
  std::uint64_t calls_left_ = 0;
  std::uint32_t thread_ = 0;
};

void warn(Problems& problems, const Op& at, std::string message, std::string hint = {}) {
  problems.add(at.line, at.column, Severity::Hang, std::move(message), std::move(hint));
}

/// "nccl_broadcast of 1024 B (line 12)", with its root where that alone tells it from `other`.
std::string describe(const Call& call, const Call& other) {
  const bool is_alike =
      call.size == other.size && kind_name(call.op->kind) == kind_name(other.op->kind);
  return fmt::format("{} of {} B{} (line {})", kind_name(call.op->kind), call.size,
                     is_alike ? fmt::format(" with root {}", call.root) : "", call.op->line);
}

std::string how_often(std::size_t n) {
  return n == 0 ? "never" : n == 1 ? "once" : fmt::format("{} times", n);
}

bool match(const Call& a, const Call& b) {
  const auto& x = std::get<NcclCollective>(a.op->kind);
  const auto& y = std::get<NcclCollective>(b.op->kind);
  return x.kind == y.kind && a.size == b.size && a.root == b.root;
}

/// What NCCL does not compare: the collective ends with the wrong result.
bool match_in_type(const Call& a, const Call& b) {
  const auto& x = std::get<NcclCollective>(a.op->kind);
  const auto& y = std::get<NcclCollective>(b.op->kind);
  return x.type == y.type && x.op == y.op;
}

/// Who only sends in it goes on where NCCL's buffers hold what it sends; `caller` calls it, and
/// `other` does not.
bool may_end_alone(const Call& call, std::int64_t caller, std::int64_t other) {
  if (static_cast<std::uint64_t>(call.size) > kMostOnTheWay) return false;
  switch (std::get<NcclCollective>(call.op->kind).kind) {
    case CollectiveKind::Broadcast:
    case CollectiveKind::Scatter:
      return other != call.root;
    case CollectiveKind::Reduce:
    case CollectiveKind::Gather:
      return caller != call.root;
    default:
      return false;
  }
}

/// Compares what `rank` calls with what rank 0 calls; whether it warned, at most once.
bool compare_ranks(const std::string& name, std::uint32_t rank, const std::vector<Call>& theirs,
                   const std::vector<Call>& mine, bool is_complete, Problems& problems) {
  const auto [a, b] = std::ranges::mismatch(theirs, mine, match);
  if (a != theirs.end() && b != mine.end()) {
    warn(problems, *b->op,
         fmt::format("the ranks of '{}' call different collectives: call {} of rank {} is {}, and "
                     "of rank 0 {}",
                     name, b - mine.begin() + 1, rank, describe(*b, *a), describe(*a, *b)),
         "all ranks must call the same collectives in the same order");
    return true;
  }
  if (is_complete && (a != theirs.end() || b != mine.end())) {
    const bool more = b != mine.end();
    const Call& alone = more ? *b : *a;
    const std::size_t most = std::max(theirs.size(), mine.size());
    const bool may_end = may_end_alone(alone, more ? rank : 0, more ? 0 : rank);
    problems.add(
        alone.op->line, alone.op->column, may_end ? Severity::Warning : Severity::Hang,
        fmt::format("rank {} of '{}' calls {} collective{}, and rank {} calls {}: this one waits "
                    "for ever{}",
                    more ? rank : 0, name, most, most == 1 ? "" : "s", more ? 0 : rank,
                    std::min(theirs.size(), mine.size()),
                    may_end ? " where NCCL's buffers do not hold what is sent" : ""));
    return true;
  }
  const auto [c, d] = std::ranges::mismatch(theirs, mine, match_in_type);
  if (c == theirs.end() || d == mine.end()) return false;
  problems.add(d->op->line, d->op->column, Severity::Warning,
               fmt::format("rank {} of '{}' calls {} with another type or reduction than rank 0 in "
                           "line {}: the result is wrong",
                           rank, name, kind_name(d->op->kind), c->op->line),
               "NCCL does not compare them: give all ranks one type and one op");
  return true;
}

void compare_collectives(const Program& program, CallLister& lister, Problems& problems) {
  std::set<std::uint32_t> used;
  for (const auto& [key, calls] : lister.collectives) used.insert(key.first);
  for (const std::uint32_t id : used) {
    const Communicator& communicator = program.communicators[id];
    const Collectives& first = lister.collectives[{id, 0}];
    for (std::uint32_t rank = 1; rank < communicator.members.size(); ++rank) {
      const Collectives& mine = lister.collectives[{id, rank}];
      if (first.threads.size() > 1 || mine.threads.size() > 1) continue;
      const bool warned = compare_ranks(communicator.name, rank, first.calls, mine.calls,
                                        lister.is_complete, problems);
      if (warned) break;  // the other ranks most likely run the same line
    }
  }
}

void compare_transfers(const Program& program, const CallLister& lister, Problems& problems) {
  std::set<const Op*> warned;  // a loop or a hundred ranks run the same line
  for (const auto& [key, both] : lister.transfers) {
    const auto& [id, from, to] = key;
    const std::string& name = program.communicators[id].name;
    const std::size_t pairs = std::min(both.sends.size(), both.recvs.size());
    if (both.sends.size() != both.recvs.size()) {
      const bool more_sends = both.sends.size() > pairs;
      const Call& alone = more_sends ? both.sends[pairs] : both.recvs[pairs];
      if (!warned.insert(alone.op).second) continue;
      const bool may_end = more_sends && static_cast<std::uint64_t>(alone.size) <= kMostOnTheWay;
      problems.add(alone.op->line, alone.op->column, may_end ? Severity::Warning : Severity::Hang,
                   fmt::format("rank {} of '{}' sends to rank {} {}, and rank {} receives {}: this "
                               "one waits for ever{}",
                               from, name, to, how_often(both.sends.size()), to,
                               how_often(both.recvs.size()),
                               may_end ? " where NCCL's buffers do not hold it" : ""));
    }
    for (std::size_t i = 0; i < pairs; ++i) {
      if (both.sends[i].size == both.recvs[i].size) continue;
      if (!warned.insert(both.recvs[i].op).second) break;
      warn(problems, *both.recvs[i].op,
           fmt::format("rank {} of '{}' receives {} B here, and rank {} sends {} B in line {}", to,
                       name, both.recvs[i].size, from, both.sends[i].size, both.sends[i].op->line));
      break;
    }
  }
}

void warn_of_missing_groups(const Program& program, const CallLister& lister, Problems& problems) {
  std::set<const Op*> warned;
  for (const auto& [key, ranks] : lister.ungrouped) {
    if (ranks.size() < 2) continue;
    const Op* op = ranks.begin()->second;
    if (!warned.insert(op).second) continue;
    warn(problems, *op,
         fmt::format("one host thread calls collectives for {} ranks of '{}' without nccl_group",
                     ranks.size(), program.communicators[std::get<0>(key)].name),
         "the first call waits for the other ranks, which the same thread would call later");
  }
}

}  // namespace

void check_nccl_order(const Program& program, Problems& problems) {
  CallLister lister{program};
  lister.list_all();
  compare_collectives(program, lister, problems);
  if (lister.is_complete) compare_transfers(program, lister, problems);
  warn_of_missing_groups(program, lister, problems);
}

}  // namespace foretrace
