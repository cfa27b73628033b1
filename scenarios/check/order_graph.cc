#include "scenarios/check/order_graph.h"

#include <algorithm>
#include <functional>

namespace foretrace {

OrderGraph::OrderGraph(const Program& program, OrderMode mode, const OrderFacts& known)
    : program_{program}, mode_{mode}, known_{known}, blocking_streams_(program.devices) {
  for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
    const Stream& stream = program.streams[s];
    if (stream.kind == StreamKind::Blocking || stream.kind == StreamKind::PerThreadDefault) {
      blocking_streams_[stream.device].push_back(s);
    }
  }
}

// ---- lanes and nodes -----------------------------------------------------------------------

std::uint32_t OrderGraph::add_host_lane(std::uint32_t process, std::uint32_t thread) {
  result_.lanes.push_back({process, thread, {}, {}});
  host_lanes_.resize(std::size_t{program_.processes} * program_.threads.size(), kNone);
  host_lanes_[process * program_.threads.size() + thread] =
      static_cast<std::uint32_t>(result_.lanes.size() - 1);
  return static_cast<std::uint32_t>(result_.lanes.size() - 1);
}

std::uint32_t OrderGraph::stream_lane(std::uint32_t process, std::uint32_t thread,
                                      std::uint32_t stream) {
  auto& lanes = stream_lanes_[{process, stream}];
  for (const std::uint32_t lane : lanes) {
    if (result_.lanes[lane].thread == thread) return lane;
  }
  result_.lanes.push_back({process, thread, stream, {}});
  return lanes.emplace_back(static_cast<std::uint32_t>(result_.lanes.size() - 1));
}

std::uint32_t OrderGraph::add_node(std::uint32_t lane, const ExecutedOp& call,
                                   const OrderClock& clock) {
  const auto node = static_cast<std::uint32_t>(result_.nodes.size());
  auto& nodes = result_.lanes[lane].nodes;
  nodes.push_back(node);
  OrderNode added;
  added.call = call;
  added.process = result_.lanes[lane].process;
  added.lane = lane;
  added.position = static_cast<std::uint32_t>(nodes.size());
  result_.nodes.push_back(added);
  result_.before.push_back(clock);
  clock_entries_ += 1 + clock.own_entries();
  return node;
}

std::uint32_t OrderGraph::add_call(std::uint32_t lane, const ExecutedOp& call,
                                   const OrderClock& clock,
                                   const std::vector<std::uint32_t>& after) {
  const std::uint32_t node = add_node(lane, call, clock);
  for (const std::uint32_t before : after) result_.edges.push_back({before, node});
  return node;
}

void OrderGraph::end_call(std::uint32_t node) {
  result_.nodes[node].ended = true;
  result_.sequence.push_back(node);
}

std::uint32_t OrderGraph::add_entry(std::uint32_t call, std::uint32_t stream,
                                    const OrderClock& clock, OrderEntry entry) {
  const OrderNode host = result_.nodes[call];
  std::vector<std::uint32_t> after = queued_before(call, stream, clock);
  const auto legacy = legacy_before(call, stream, clock, entry.role);
  after.insert(after.end(), legacy.begin(), legacy.end());
  after.insert(after.end(), entry.after.begin(), entry.after.end());

  const std::uint32_t lane = stream_lane(host.process, result_.lanes[host.lane].thread, stream);
  const std::uint32_t node = add_node(lane, host.call, clock);
  if (mode_ == OrderMode::Likely || entry.role == OrderRole::Work) {
    separators_[lane].push_back(node);
  }
  OrderNode& added = result_.nodes[node];
  added.issued = host.position;
  added.first_work = static_cast<std::uint32_t>(result_.work.size());
  added.work_count = static_cast<std::uint32_t>(entry.work.size());
  result_.work.insert(result_.work.end(), entry.work.begin(), entry.work.end());
  if (host.position > 1) {
    result_.edges.push_back({result_.lanes[host.lane].nodes[host.position - 2], node});
  }
  Open& open = open_[node];
  open.entry = std::move(entry);
  open.kernels_left = open.entry.kernels.size();
  for (std::uint32_t k = 0; k < open.entry.kernels.size(); ++k) {
    const OrderKernel& kernel = open.entry.kernels[k];
    open.kernels.push_back({kernel.after.size(), kernel.parts.size()});
    for (const auto& [transfer, rank] : kernel.parts) {
      transfer->parties.push_back({.entry = node, .rank = rank, .kernel = k});
    }
  }
  ++open_entries_;
  // The newest first: what ends before it is known with it.
  std::ranges::sort(after, std::greater{});
  for (const std::uint32_t before : after) follow(node, before);
  if (open.pending == 0) ready_.push_back(node);
  settle();
  return node;
}

void OrderGraph::follow(std::uint32_t node, std::uint32_t before) {
  if (result_.is_ordered(before, node)) return;  // known already: that edge would be implied
  result_.edges.push_back({before, node});
  if (result_.nodes[before].ended) {
    join_end_of(before, result_.before[node]);
    return;
  }
  open_.at(before).followers.push_back(node);
  ++open_.at(node).pending;
}

// ---- who is issued before whom -------------------------------------------------------------

std::uint32_t OrderGraph::last_known(const std::vector<std::uint32_t>& nodes, std::uint32_t call,
                                     const OrderClock& clock) const {
  if (nodes.empty()) return kNone;
  const OrderLane& mine = lane_of(call);
  const std::uint32_t thread = lane_of(nodes.front()).thread;
  if (mode_ == OrderMode::Likely || thread == mine.thread) return nodes.back();
  // Another thread's: those whose calls have returned for certain.
  const std::uint32_t host = host_lanes_[mine.process * program_.threads.size() + thread];
  const std::uint32_t returned = clock[host];
  const auto beyond = std::ranges::upper_bound(
      nodes, returned, {}, [this](std::uint32_t n) { return result_.nodes[n].issued; });
  return beyond == nodes.begin() ? kNone : *std::prev(beyond);
}

std::vector<std::uint32_t> OrderGraph::queued_before(std::uint32_t call, std::uint32_t stream,
                                                     const OrderClock& clock,
                                                     bool of_all_threads) const {
  const bool own_only =
      !of_all_threads && program_.streams[stream].kind == StreamKind::PerThreadDefault;
  return lasts_before(call, stream, clock, own_only, false);
}

/// The implicit synchronization. "When an action is taken in the legacy stream such as a kernel
/// launch or cudaStreamWaitEvent(), the legacy stream first waits on all blocking streams, the
/// action is queued in the legacy stream, and then all blocking streams wait on the legacy stream."
/// Seen on H200: a wait for an event that is complete is no such action, in neither stream.
std::vector<std::uint32_t> OrderGraph::legacy_before(std::uint32_t call, std::uint32_t stream,
                                                     const OrderClock& clock,
                                                     OrderRole role) const {
  const Stream& declared = program_.streams[stream];
  const bool is_legacy = declared.kind == StreamKind::LegacyDefault;
  const bool is_exempt = role == OrderRole::Marker || (role == OrderRole::Record && !is_legacy);
  if (declared.kind == StreamKind::NonBlocking) return {};
  if (mode_ == OrderMode::Guaranteed && is_exempt) return {};
  // The first streams are the legacy ones, one per device.
  if (!is_legacy) return lasts_before(call, declared.device, clock, false, true);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t other : blocking_streams_[declared.device]) {
    const bool own_only = program_.streams[other].kind == StreamKind::PerThreadDefault;
    const auto lasts = lasts_before(call, other, clock, own_only, true);
    found.insert(found.end(), lasts.begin(), lasts.end());
  }
  return found;
}

/// Of every lane of `stream`; `work_only`: of the entries that the legacy stream keeps apart.
std::vector<std::uint32_t> OrderGraph::lasts_before(std::uint32_t call, std::uint32_t stream,
                                                    const OrderClock& clock, bool own_only,
                                                    bool work_only) const {
  std::vector<std::uint32_t> found;
  const OrderLane& mine = lane_of(call);
  const auto lanes = stream_lanes_.find({mine.process, stream});
  if (lanes == stream_lanes_.end()) return found;
  // Of whatever threads they are, the entries of a stream follow each other.
  const bool in_one_row =
      mode_ == OrderMode::Likely && program_.streams[stream].kind != StreamKind::PerThreadDefault;
  for (const std::uint32_t lane : lanes->second) {
    if (own_only && result_.lanes[lane].thread != mine.thread) continue;
    const auto separators = separators_.find(lane);
    if (work_only && separators == separators_.end()) continue;
    const auto& nodes = work_only ? separators->second : result_.lanes[lane].nodes;
    const std::uint32_t last = last_known(nodes, call, clock);
    if (last == kNone) continue;
    if (in_one_row && !found.empty()) {
      found.front() = std::max(found.front(), last);  // which follows the others
    } else {
      found.push_back(last);
    }
  }
  return found;
}

// ---- signals -------------------------------------------------------------------------------

void OrderGraph::give(std::uint32_t semaphore, std::uint32_t giver_lane, const OrderClock& clock) {
  hand_over(semaphore, giver_lane, clock);
  settle();
}

void OrderGraph::hand_over(std::uint32_t semaphore, std::uint32_t giver_lane,
                           const OrderClock& clock) {
  const OrderLane& giver = result_.lanes[giver_lane];
  facts_.givers[semaphore].insert({giver.thread, giver.stream});
  Semaphore& state = semaphores_[semaphore];
  state.given.push_back(clock);
  clock_entries_ += 1 + clock.own_entries();
  if (state.waiting.empty()) return;
  ready_.push_back(state.waiting.front());
  state.waiting.erase(state.waiting.begin());
}

bool OrderGraph::can_take(std::uint32_t semaphore) const {
  const auto found = semaphores_.find(semaphore);
  return found != semaphores_.end() && found->second.taken < found->second.given.size();
}

void OrderGraph::take(std::uint32_t semaphore, std::uint32_t taker_lane, OrderClock& into) {
  Semaphore& state = semaphores_[semaphore];
  const std::uint64_t mine = state.taken_by[taker_lane]++;
  const std::uint64_t turn = state.taken++;
  if (mode_ == OrderMode::Likely) {
    join(into, state.given[turn]);
    return;
  }
  // With one giver, whoever takes for the n-th time knows of n signals at least.
  const auto givers = known_.givers.find(semaphore);
  if (givers != known_.givers.end() && givers->second.size() == 1) join(into, state.given[mine]);
}

void OrderGraph::note_recorder(std::uint32_t event, std::uint32_t record) {
  const OrderLane& lane = lane_of(record);
  facts_.recorders[event].insert({lane.thread, lane.stream});
}

}  // namespace foretrace
