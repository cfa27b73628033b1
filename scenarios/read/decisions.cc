#include "scenarios/read/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/base/values/quantity.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostDecisions = 1 << 20;
constexpr auto kMostTurns = static_cast<std::int64_t>(kMostExecutions);

/// `times` of a repeat, `in` of a for_each; null of anything else.
const YamlNode* length_of(const YamlEntry& op) {
  if (op.key.text == "repeat") return value_of(op.value, "times");
  return op.key.text == "for_each" ? value_of(op.value, "in") : nullptr;
}

}  // namespace

const YamlNode* value_of(const YamlNode& map, std::string_view key) {
  for (const YamlEntry& entry : map.entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

struct Decisions::Decision {
  const YamlNode& node;
  Expr expr;
  VariableDomain domain;  ///< for messages: the names of the loops around it
  bool reached = false;
  bool ever = false;  ///< it was something else than 0
};

/// A `when`, or a loop with decisions about it or in it.
struct Decisions::Step {
  const YamlNode* loop = nullptr;  ///< its map; null: a `when`
  Decision* decision = nullptr;    ///< the condition, or the length; null: the length is `times`
  std::int64_t times = 1;
  bool turns_decide = false;  ///< a decision in the loop depends on its turn
  Steps inside;               ///< of the loop, or where the condition holds
  Steps otherwise;
};

Decisions::Decisions(Reader& reader, const YamlNode& ops, std::vector<std::uint32_t> processes)
    : reader_{reader}, processes_{std::move(processes)} {
  const std::size_t errors = reader_.problems.error_count();
  reader_.domain = {processes_, {}};
  steps_ = std::make_unique<Steps>(find(ops));
  const auto index = [&](const auto& self, const Steps& steps) -> void {
    for (const Step& step : steps) {
      if (step.loop != nullptr) loops_[step.loop] = &step;
      self(self, step.inside);
      self(self, step.otherwise);
    }
  };
  index(index, *steps_);
  is_broken_ = reader_.problems.error_count() > errors;
}

Decisions::~Decisions() = default;

Decisions::Steps Decisions::find(const YamlNode& ops) {
  Steps steps;
  for (const YamlNode& item : ops.items) {
    for (const YamlEntry& op : item.entries) {
      if (op.key.text == "when") {
        steps.push_back(find_when(op.value));
      } else if (length_of(op) != nullptr) {
        Step step = find_loop(op.value);
        if (step.decision != nullptr || !step.inside.empty()) steps.push_back(std::move(step));
      } else {
        for (const YamlEntry& key : op.value.entries) {
          for (Step& step : find(key.value)) steps.push_back(std::move(step));
        }
      }
    }
  }
  return steps;
}

Decisions::Step Decisions::find_when(const YamlNode& when) {
  Step step;
  if (const YamlNode* condition = value_of(when, "condition")) {
    step.decision = add_condition(*condition);
  }
  if (const YamlNode* ops = value_of(when, "ops")) step.inside = find(*ops);
  if (const YamlNode* ops = value_of(when, "otherwise")) step.otherwise = find(*ops);
  return step;
}

Decisions::Step Decisions::find_loop(const YamlNode& loop) {
  Step step;
  step.loop = &loop;
  const YamlNode* times = value_of(loop, "times");
  step.decision = add_length(times != nullptr ? *times : *value_of(loop, "in"), step.times);
  const YamlNode* name = value_of(loop, "index");
  bool turns_decide = false;
  around_.push_back(&turns_decide);
  reader_.domain.loops.push_back({name == nullptr ? "" : name->text, 1});
  if (const YamlNode* ops = value_of(loop, "ops")) step.inside = find(*ops);
  reader_.domain.loops.pop_back();
  around_.pop_back();
  step.turns_decide = turns_decide;
  return step;
}

Decisions::Decision* Decisions::add(const YamlNode& node, Expr expr) {
  for (const std::size_t slot : used_slots({&expr})) {
    if (slot == 0) process_decides_ = true;
    if (slot > 0) *around_[slot - 1] = true;
  }
  auto decision = std::make_unique<Decision>(Decision{node, std::move(expr), reader_.domain});
  return (known_[&node] = std::move(decision)).get();
}

Decisions::Decision* Decisions::add_condition(const YamlNode& node) {
  const auto quantity = read_quantity(reader_, node, "a number from 0 to 1");
  if (!quantity) return nullptr;
  auto expr = to_expr(*quantity, kNumber);
  if (!expr) {
    reader_.problems.error(node, expr.error().message, expr.error().hint);
    return nullptr;
  }
  conditions_.push_back(add(node, *std::move(expr)));
  return conditions_.back();
}

Decisions::Decision* Decisions::add_length(const YamlNode& node, std::int64_t& constant) {
  if (node.kind != YamlNode::Kind::Scalar) return nullptr;
  const auto quantity =
      parse_quantity(node.text, [this](std::string_view name) { return look_up(reader_, name); });
  if (!quantity) return nullptr;
  auto expr = to_expr(*quantity, kNumber);
  if (!expr) return nullptr;
  if (!expr->is_constant()) return add(node, *std::move(expr));
  constant = expr->constant();
  return nullptr;
}

/// Adds what it is; false where that is wrong, which is reported.
bool Decisions::decide(Decision& decision, std::uint32_t process, const Turns& turns,
                       Decided& decided, std::int64_t high) {
  if (is_broken_) return false;
  std::vector<std::int64_t> variables{process};
  variables.insert(variables.end(), turns.begin(), turns.end());
  const std::optional<std::int64_t> value = decision.expr.try_eval(variables);
  const bool is_right = value && *value >= 0 && *value <= high;
  if (++evaluated_ > kMostDecisions) {
    reader_.problems.error(
        decision.node,
        fmt::format("the conditions of 'when' and the lengths of loops, times the processes and "
                    "the turns of loops, are more than {}",
                    kMostDecisions));
  } else if (!is_right) {
    const std::string where =
        describe_assignment(decision.domain, used_slots({&decision.expr}), variables);
    reader_.problems.error(
        decision.node,
        fmt::format("'{}' must be between 0 and {}: it {}{}{}", decision.node.text, high,
                    value ? fmt::format("is {}", *value) : "overflows 64 bits or divides by 0",
                    where.empty() ? "" : " for ", where));
  }
  is_broken_ = evaluated_ > kMostDecisions || !is_right;
  if (is_broken_) return false;
  decision.reached = true;
  decision.ever = decision.ever || *value != 0;
  decided.push_back(*value);
  return true;
}

void Decisions::walk(const Steps& steps, std::uint32_t process, Turns& turns, Decided& decided) {
  for (const Step& step : steps) {
    if (step.loop == nullptr) {
      if (step.decision == nullptr || !decide(*step.decision, process, turns, decided, 1)) return;
      walk(decided.back() != 0 ? step.inside : step.otherwise, process, turns, decided);
      continue;
    }
    std::int64_t times = step.times;
    if (step.decision != nullptr) {
      if (!decide(*step.decision, process, turns, decided, kMostTurns)) return;
      times = decided.back();
    }
    turns.push_back(0);
    const std::int64_t walked = step.turns_decide ? times : std::min<std::int64_t>(times, 1);
    for (; turns.back() < walked && !is_broken_; ++turns.back()) {
      walk(step.inside, process, turns, decided);
    }
    turns.pop_back();
  }
}

std::vector<std::vector<std::uint32_t>> Decisions::groups() {
  if (is_broken_) return {};
  std::map<Decided, std::vector<std::uint32_t>> groups;
  for (const std::uint32_t process : processes_) {
    if (!process_decides_ && !groups.empty()) {
      groups.begin()->second.push_back(process);
      continue;
    }
    Turns turns;
    Decided decided;
    walk(*steps_, process, turns, decided);
    if (is_broken_) return {};
    groups[decided].push_back(process);
  }
  std::vector<std::vector<std::uint32_t>> lists;
  lists.reserve(groups.size());
  for (auto& [decided, processes] : groups) lists.push_back(std::move(processes));
  return lists;
}

void Decisions::add_to(std::vector<ConditionSeen>& held) const {
  if (is_broken_) return;
  held.resize(conditions_.size());  // threads that are the same operations have the same ones
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Decision& one = *conditions_[i];
    held[i] = {&one.node, held[i].reached || one.reached, held[i].ever || one.ever,
               !one.domain.loops.empty()};
  }
}

void warn_of_never(Problems& problems, const std::vector<ConditionSeen>& held) {
  for (const ConditionSeen& one : held) {
    if (one.ever || !one.reached) continue;
    problems.warning(
        *one.condition,
        fmt::format("this holds in none of the thread's processes{}, so its operations are not "
                    "even read",
                    one.in_turns ? " and turns" : ""));
  }
}

std::optional<std::int64_t> Decisions::value(const YamlNode& node, std::uint32_t process,
                                             const Turns& turns) const {
  const auto found = known_.find(&node);
  if (found == known_.end()) return std::nullopt;
  std::vector<std::int64_t> variables{process};
  variables.insert(variables.end(), turns.begin(), turns.end());
  return found->second->expr.try_eval(variables);
}

std::vector<std::int64_t> Decisions::runs(const YamlNode& loop, std::uint32_t process,
                                          const Turns& turns, std::int64_t times) {
  const auto found = loops_.find(&loop);
  if (found == loops_.end() || !found->second->turns_decide || times < 2) return {times};
  std::vector<std::int64_t> lengths;
  Decided before;
  Turns inside = turns;
  inside.push_back(0);
  for (; inside.back() < times; ++inside.back()) {
    Decided decided;
    walk(found->second->inside, process, inside, decided);
    if (is_broken_) return {times};
    if (lengths.empty() || decided != before) {
      lengths.push_back(0);
      before = std::move(decided);
    }
    ++lengths.back();
  }
  return lengths;
}

}  // namespace foretrace
