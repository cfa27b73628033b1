// Who never comes to an end, as far as a walk without times can see it: host threads that wait for
// each other, streams that wait for a signal or a rank. What the lists of NCCL calls tell already
// (check_nccl_order) is not said again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/check/check.h"
#include "scenarios/program/op_facts.h"

namespace foretrace {
namespace {

/// Why an entry that everything before has ended for does not end itself.
std::string reason(const ExecutedOp& entry, bool always) {
  const OpFacts facts = op_facts(entry.op->kind);
  if (facts.work == StreamWork::HostFunction) {
    return fmt::format("the host function of line {} {}", entry.op->line,
                       always ? "is never released" : "waits for its signal");
  }
  if (facts.comm != nullptr) {
    return fmt::format("{} of line {} {} its partner", kind_name(entry.op->kind), entry.op->line,
                       always ? "never meets" : "waits for");
  }
  return fmt::format("line {} {}", entry.op->line, always ? "never ends" : "waits");
}

/// For each process, the first such reason.
std::map<std::uint32_t, std::pair<const Op*, std::string>> reasons(const HappensBefore& order,
                                                                   bool always) {
  std::vector<bool> follows_open(order.nodes.size());
  for (const OrderEdge& edge : order.edges) {
    if (!order.nodes[edge.from].ended) follows_open[edge.to] = true;
  }
  std::map<std::uint32_t, std::pair<const Op*, std::string>> found;
  for (std::uint32_t n = 0; n < order.nodes.size(); ++n) {
    const OrderNode& node = order.nodes[n];
    if (!order.is_device(n) || node.ended || follows_open[n]) continue;
    const ExecutedOp& does = node.work_count > 0 ? order.work[node.first_work] : node.call;
    std::string why = reason(does, always);
    if (const auto missing = order.missing.find(n); missing != order.missing.end()) {
      why += ": " + missing->second;
    }
    found.emplace(node.process, std::pair{does.op, std::move(why)});
  }
  return found;
}

/// Whether anything in it waits for another: else it comes to its end, however long it is.
bool has_partners(const Program& program) {
  return !program.signals.empty() || !program.barriers.empty() || !program.communicators.empty();
}

constexpr std::uint32_t kOtherOrders = 32;
constexpr std::uint64_t kMostWalkedAgain = 200'000;  // operations of all those orders together

/// Where everybody comes to the end all the same; empty: nowhere, as far as that was tried.
std::string where_it_ends(const Program& program, const HappensBefore& order) {
  const auto ends = [&](std::uint32_t seed) {
    return happens_before(program, {.mode = OrderMode::Likely,
                                    .seed = seed,
                                    .buffers_hold_sends = true,
                                    .connections_serve_both = true})
        .is_finished;
  };
  const OrderOptions both{.mode = OrderMode::Likely, .connections_serve_both = true};
  if (program.warmup == 0 && happens_before(program, both).is_finished) {
    return "it ends where ranks that are connected one way are so the other way, too";
  }
  if (ends(0)) return "it ends where NCCL's buffers hold what is sent";
  const std::uint64_t orders = kMostWalkedAgain / std::max<std::uint64_t>(1, order.nodes.size());
  for (std::uint32_t seed = 1; seed <= std::min<std::uint64_t>(orders, kOtherOrders); ++seed) {
    if (ends(seed)) return "it ends where threads and streams come in another order";
  }
  return "";
}

/// What a thread's call that never returns is called.
std::string waits_for_ever(const Program& program, const HappensBefore& order, std::uint32_t node,
                           bool always) {
  const std::string& thread = program.threads[order.lanes[order.nodes[node].lane].thread].name;
  const OpKind& call = order.nodes[node].call.op->kind;
  if (std::holds_alternative<EventWaitFor>(call)) {
    return fmt::format("host thread '{}' {} in vain here, until its time is over", thread,
                       always ? "waits" : "may wait");
  }
  return fmt::format("host thread '{}' {} here for ever", thread, always ? "waits" : "may wait");
}

/// Where the search was cut, at the last call that it saw.
void note_the_cut(const Program& program, const HappensBefore& order, Problems& problems) {
  std::size_t calls = 0;
  const Op* last = nullptr;
  for (std::uint32_t n = 0; n < order.nodes.size(); ++n) {
    if (order.is_device(n)) continue;
    ++calls;
    last = order.nodes[n].call.op;
  }
  const bool may_hang = has_partners(program);
  const bool may_race = !program.buffers.empty();
  if (last == nullptr || !(may_hang || may_race)) return;
  problems.add(last->line, last->column, Severity::Note,
               fmt::format("{} were looked for in the first {} operations of the run only, up to "
                           "here",
                           may_hang && may_race ? "hangs and races"
                           : may_hang           ? "hangs"
                                                : "races",
                           calls),
               may_hang ? "what comes later may still hang: foretrace simulate runs all of it"
                        : "fewer iterations of its loops show as much");
}

}  // namespace

void check_hangs(const Program& program, const HappensBefore& order, Problems& problems) {
  if (!order.is_complete) note_the_cut(program, order, problems);
  if (order.is_finished || !order.is_complete) return;
  const std::string where = where_it_ends(program, order);
  const bool always = where.empty();
  const auto why = reasons(order, always);
  std::set<const Op*> warned;
  const auto warn = [&](const Op& op, const std::string& message, const std::string& hint) {
    if (!warned.insert(&op).second) return;
    if (always) {
      problems.add(op.line, op.column, Severity::Hang, message, hint);
    } else {
      problems.add(op.line, op.column, Severity::Warning, message,
                   hint + (hint.empty() ? "" : "; ") + where);
    }
  };
  bool a_thread_waits = false;
  for (std::uint32_t n = 0; n < order.nodes.size(); ++n) {
    const OrderNode& node = order.nodes[n];
    if (order.is_device(n) || node.ended) continue;
    a_thread_waits = true;
    const auto cause = why.find(node.process);
    const auto missing = order.missing.find(n);
    warn(*node.call.op, waits_for_ever(program, order, n, always),
         missing != order.missing.end() ? missing->second
         : cause == why.end()           ? ""
                                        : cause->second.second);
  }
  if (a_thread_waits) return;
  for (const auto& [process, cause] : why) {
    warn(*cause.first,
         always ? "the stream waits here for ever" : "the stream may wait here for ever",
         cause.second);
  }
}

}  // namespace foretrace
