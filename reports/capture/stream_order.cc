#include "reports/capture/stream_order.h"

#include <fmt/format.h>

namespace foretrace::capture {

std::string Writing::stream_of(std::int64_t lane) {
  out.streams.insert(lane);
  return fmt::format("s{}", lane);
}

std::size_t StreamOrder::record_behind(const Launched& work) {
  const auto [found, is_new] = records_.try_emplace(work.line, w_.out.events);
  if (is_new) {
    w_.script.add_behind(work.line, fmt::format("event_record: {{event: order({}), stream: {}}}",
                                                w_.out.events, w_.stream_of(work.lane)));
    ++w_.out.events;
    w_.owed += w_.options.calls.event_record;
  }
  return found->second;
}

void StreamOrder::remember_record(const Event& call, const std::string& name) {
  if (w_.process.syncs.empty() || name.find("EventRecord") == std::string::npos) return;
  recorded_[call.correlation] = w_.script.size();
}

void StreamOrder::add_wait(const Event& call) {
  if (w_.process.tells_stream_waits) return wait_as_told(call);
  waits_.push_back(&call);
}

/// What CUPTI says a stream waits for.
void StreamOrder::wait_as_told(const Event& call) {
  const auto told = w_.process.syncs.find(call.correlation);
  if (told == w_.process.syncs.end() || told->second.on_stream < 0) return;
  const SyncDetail& wait = told->second;
  const auto recorded = recorded_.find(wait.record);
  const Launched* last = w_.in_flight.last_on(wait.on_stream);
  if (recorded == recorded_.end() || last == nullptr) return;  // an earlier step's
  if (lanes_of_collectives_.contains(wait.stream)) {
    source_of_collective_ = wait.on_stream;
    return;
  }
  if (wait.stream < 0 || wait.stream == wait.on_stream) return;
  const std::string stream = w_.stream_of(wait.stream);
  if (lanes_of_collectives_.contains(wait.on_stream)) {
    if (last->collective) wait_for_work(*last->collective, last->end, wait.stream);
    return;
  }
  if (recorded->second == 0) return;  // before all that is written
  const auto [found, is_new] = records_told_.try_emplace(wait.record, w_.out.events);
  if (is_new) {
    w_.script.add_behind(recorded->second - 1,
                         fmt::format("event_record: {{event: order({}), stream: {}}}",
                                     w_.out.events, w_.stream_of(wait.on_stream)));
    ++w_.out.events;
    w_.owed += w_.options.calls.event_record;
  }
  w_.awaits(wait.stream, last->end);
  w_.script.add(
      fmt::format("stream_wait_event: {{stream: {}, event: order({})}}", stream, found->second));
  w_.owed += w_.options.calls.stream_wait;
}

void StreamOrder::wait_event(const Launched& work, std::int64_t lane) {
  w_.awaits(lane, work.end);
  const std::string stream = w_.stream_of(lane);
  w_.guess("a stream waits for work of another: for which is taken from the captured times");
  const std::size_t event = record_behind(work);
  w_.script.add(fmt::format("stream_wait_event: {{stream: {}, event: order({})}}", stream, event));
  w_.owed += w_.options.calls.stream_wait;
}

void StreamOrder::order(const Event& call, const Event& work, std::int64_t ready) {
  bool waits = false;
  for (const Event* wait : waits_) {
    const bool is_nccls = wait->external != 0 && wait->external == last_collective_;
    if (is_nccls || wait->begin > call.begin) continue;
    if (!wait_for_collective(work)) waits = true;
  }
  waits_.clear();
  // What ended right before it began says why, where nothing else does.
  const bool is_late = work.begin - ready > kBlockedNs;
  const Launched* tight =
      is_late ? w_.in_flight.ended_within(work.begin - kBlockedNs, work.begin, work.lane) : nullptr;
  if (tight != nullptr && tight->collective) {
    wait_for_work(*tight->collective, tight->end, work.lane);
  } else if (tight != nullptr) {
    wait_event(*tight, work.lane);
  } else if (waits) {
    if (const Launched* used = used_before(work)) wait_event(*used, work.lane);
  }
}

/// The last of the stream that was used before, if it had ended. Null: there is none, or the
/// captured times contradict the wait.
const Launched* StreamOrder::used_before(const Event& work) {
  if (!w_.last_stream || *w_.last_stream == work.lane) return nullptr;
  const Launched* last = w_.in_flight.last_on(*w_.last_stream);
  if (last == nullptr || last->collective) return nullptr;
  if (last->end <= work.begin) return last;
  w_.guess("a wait that the captured times contradict is left out");
  return nullptr;
}

/// The collective that the wait is for: one that ended right before the work began, else the
/// oldest that nobody waited for and that had ended.
bool StreamOrder::wait_for_collective(const Event& work) {
  auto chosen = pending_.end();
  for (auto one = pending_.begin(); one != pending_.end(); ++one) {
    if (one->end > work.begin) continue;
    if (chosen == pending_.end() || work.begin - one->end < kBlockedNs) chosen = one;
  }
  if (chosen == pending_.end()) return false;
  w_.guess("which collective a stream waits for is taken from the captured times");
  wait_for_work(chosen->number, chosen->end, work.lane);
  pending_.erase(chosen);
  return true;
}

void StreamOrder::wait_for_work(std::size_t number, std::int64_t end, std::int64_t lane) {
  w_.awaits(lane, end);
  const std::string stream = w_.stream_of(lane);
  if (!waited_.emplace(number, stream).second) return;
  w_.script.add(fmt::format("work_wait: {{work: work_{}, stream: {}}}", number, stream));
  w_.owed += w_.options.calls.stream_wait;
}

std::int64_t StreamOrder::source_of(const Event& collective) {
  if (source_of_collective_) return *std::exchange(source_of_collective_, {});
  const std::int64_t used = w_.last_stream.value_or(collective.lane);
  const Launched* last = w_.in_flight.last_on(used);
  if (last == nullptr || last->end <= collective.begin) return used;
  w_.guess("a wait that the captured times contradict is left out");
  return collective.lane;
}

void StreamOrder::add_collective(std::size_t number, std::int64_t end, std::uint64_t external) {
  constexpr std::size_t kMostPending = 1024;  // that nobody waits for, ever
  if (pending_.size() == kMostPending) pending_.pop_front();
  pending_.push_back({number, end});
  last_collective_ = external;
  waits_.clear();
}

}  // namespace foretrace::capture
