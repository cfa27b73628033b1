#include "scenarios/check/event_records.h"

#include <algorithm>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

template <class Visit>
void for_each_event(const Op& op, const Visit& visit) {
  const OpFacts facts = op_facts(op.kind);
  if (facts.event_recorded != nullptr) visit(*facts.event_recorded);
  for (const EventRef* event : facts.events_waited_for) visit(*event);
}

}  // namespace

EventRecords::EventRecords(const Program& program) : program_{program}, left_{kMostWalkedOfAll} {
  for_each_op(program, [&](const HostThread&, const Op& op, Around around) {
    if (!is_inside<GraphCapture>(around)) return;
    for_each_event(op, [&](const EventRef& event) { families_.insert(event.first); });
  });
  for_each_op(program, [&](const HostThread&, const Op& op, Around around) {
    const auto* record = std::get_if<EventRecord>(&op.kind);
    if (record == nullptr || !families_.contains(record->event.first)) return;
    for (const Op* outer : around) with_records_.insert(block_of(outer->kind));
  });
}

bool EventRecords::concern(const Op& op) const {
  bool names_one = false;
  for_each_event(
      op, [&](const EventRef& event) { names_one = names_one || families_.contains(event.first); });
  return names_one;
}

void EventRecords::follow(const HostThread& thread, std::uint32_t process) {
  thread_ = &thread;
  process_ = process;
  last_.clear();
}

const Op* EventRecords::captured(std::uint32_t event) {
  const auto last = last_.find(event);
  if (last == last_.end() || last->second == nullptr) return nullptr;
  return others_may_record(event) ? nullptr : last->second;
}

bool EventRecords::is_outside(std::uint32_t event) {
  const auto last = last_.find(event);
  return (last != last_.end() && last->second == nullptr) || others_record(event);
}

template <class Test>
bool EventRecords::any_other(const Test& test) {
  return std::ranges::any_of(program_.threads, [&](const HostThread& thread) {
    return &thread != thread_ && std::ranges::binary_search(thread.processes, process_) &&
           test(recorded_by(thread));
  });
}

bool EventRecords::others_record(std::uint32_t event) {
  return any_other([&](const Recorded& other) { return other.events.contains(event); });
}

bool EventRecords::others_may_record(std::uint32_t event) {
  return any_other(
      [&](const Recorded& other) { return !other.is_all || other.events.contains(event); });
}

const EventRecords::Recorded& EventRecords::recorded_by(const HostThread& thread) {
  const auto [found, is_new] = recorded_.try_emplace({&thread, process_});
  Recorded& recorded = found->second;
  if (!is_new) return recorded;
  std::uint64_t left = std::min(kMostWalked, left_);
  left_ -= left;
  ExecutionWalk{}.run(
      thread.ops, process_, [&](const Block& block) { return with_records_.contains(&block); },
      [&](const Op& op, Variables v, Around) {
        recorded.is_all = left > 0;
        if (!recorded.is_all) return false;
        --left;
        const auto* record = std::get_if<EventRecord>(&op.kind);
        if (record == nullptr || !families_.contains(record->event.first)) return true;
        recorded.events.insert(record->event.resolve(v).value);
        return true;
      });
  left_ += left;
  return recorded;
}

}  // namespace foretrace
