#include "sim/chunk/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

ChunkTime ticks(TimePoint when) { return when.time_since_epoch().count(); }
TimePoint time_point(ChunkTime when) { return TimePoint{Duration{when}}; }

}  // namespace

// ---- operations ----------------------------------------------------------------------------

ChunkNetwork::OperationId ChunkNetwork::add(const ChunkProgram& program,
                                            const std::vector<std::uint32_t>& gpus, Owner& owner) {
  added_ += program.messages();
  if (added_ > kMostMessages) {
    throw OutOfBounds{fmt::format("more than {} messages of --fidelity chunk", kMostMessages)};
  }
  std::uint32_t id = static_cast<std::uint32_t>(operations_.size());
  if (!free_operations_.empty()) {
    id = free_operations_.back();
    free_operations_.pop_back();
  } else {
    operations_.emplace_back();
  }
  Operation& operation = operations_[id];
  operation = {};
  operation.owner = &owner;
  operation.full = program.full;
  operation.last = program.last;
  operation.full_turn = program.full.turn();
  operation.last_turn = program.last.turn();
  operation.passes = program.full.count + program.last.count;
  operation.fixed = program.fixed;
  operation.hop = program.hop;
  operation.sends = program.sends;
  operation.ring = program.ring;
  operation.together = program.together;
  operation.by_kernel = program.by_kernel;
  operation.stages = static_cast<std::uint32_t>(program.stages.size());
  operation.links = static_cast<std::uint32_t>(program.links.size());
  operation.edges = 2 * operation.links;
  const auto window = static_cast<std::uint32_t>(program.window);
  operation.slots = std::size_t{operation.links} * window;
  operation.first_stage = stages_.take(operation.stages);
  operation.first_link = links_.take(operation.links);
  operation.first_edge = edges_.take(operation.edges);
  operation.first_slot = slots_.take(operation.slots);
  operation.rank_stages.assign(program.ranks + 1, 0);
  operation.open.assign(program.ranks, 0);

  for (std::uint32_t i = 0; i < operation.links; ++i) {
    const ChunkLink& link = program.links[i];
    const bool ends = link.to == kNowhere;
    links_[operation.first_link + i] = {operation.first_stage + link.from,
                                        ends ? kNowhere : operation.first_stage + link.to,
                                        gpus[link.to_rank],
                                        operation.first_slot + i * window,
                                        window,
                                        0,
                                        0,
                                        0,
                                        0,
                                        !ends && link.to_rank == program.stages[link.from].rank,
                                        link.way};
  }
  std::uint32_t edge = operation.first_edge;
  for (std::uint32_t i = 0; i < operation.stages; ++i) {
    const ChunkStage& declared = program.stages[i];
    Stage& stage = stages_[operation.first_stage + i];
    stage.operation = id;
    stage.rank = declared.rank;
    stage.port = gpus[declared.rank];
    stage.first_input = edge;
    stage.inputs = static_cast<std::uint16_t>(declared.inputs.size());
    for (const std::uint32_t link : declared.inputs) edges_[edge++] = operation.first_link + link;
    stage.first_output = edge;
    stage.outputs = static_cast<std::uint16_t>(declared.outputs.size());
    for (const std::uint32_t link : declared.outputs) edges_[edge++] = operation.first_link + link;
    if (stage.inputs > 0) stage.from = edges_[stage.first_input];
    if (stage.outputs > 0) stage.to = edges_[stage.first_output];
    ++operation.open[declared.rank];
  }
  for (std::uint32_t rank = 0; rank < program.ranks; ++rank) {
    operation.rank_stages[rank + 1] = operation.rank_stages[rank] + operation.open[rank];
    if (operation.open[rank] > 0) ++operation.open_ranks;
  }
  return {id};
}

void ChunkNetwork::begin(OperationId id, std::uint32_t rank) {
  now_ = std::max(now_, ticks(engine_.now()));
  const Operation& operation = operations_[id.value];
  const std::uint32_t first = operation.first_stage + operation.rank_stages[rank];
  const std::uint32_t end = operation.first_stage + operation.rank_stages[rank + 1];
  FORETRACE_CHECK(first < end, "a rank that begins has something to do");
  for (std::uint32_t i = first; i < end; ++i) {
    stages_[i].free = now_ + operation.fixed;
    advance(at(i));
  }
  if (!running_) reschedule();
}

/// The last stage of a rank is through.
void ChunkNetwork::through(std::uint32_t index) {
  const std::uint32_t rank = stages_[index].rank;
  const std::uint32_t id = stages_[index].operation;
  Operation& operation = operations_[id];
  if (--operation.open[rank] > 0) return;
  Owner* owner = operation.owner;
  const bool together = operation.together;
  const auto ranks = static_cast<std::uint32_t>(operation.open.size());
  if (--operation.open_ranks == 0) {
    remove(id);
  } else if (together) {
    return;
  }
  engine_.queue().advance_to(time_point(now_));
  for (std::uint32_t r = together ? 0 : rank; r < (together ? ranks : rank + 1); ++r) {
    owner->rank_over(r);
  }
}

void ChunkNetwork::remove(std::uint32_t id) {
  const Operation& operation = operations_[id];
  stages_.release(operation.first_stage, operation.stages);
  links_.release(operation.first_link, operation.links);
  edges_.release(operation.first_edge, operation.edges);
  slots_.release(operation.first_slot, operation.slots);
  free_operations_.push_back(id);
}

// ---- time ----------------------------------------------------------------------------------

void ChunkNetwork::fire(std::uint64_t version) {
  if (version != version_) return;  // something earlier came since
  scheduled_ = ChunkQueue::kNever;
  run_ahead();
  reschedule();
}

void ChunkNetwork::run_ahead() {
  running_ = true;
  const auto until = [this] {
    EventQueue& queue = engine_.queue();
    if (engine_.has_flows()) return ticks(queue.now());
    return queue.empty() ? ChunkQueue::kNever : ticks(queue.next());
  };
  ChunkTime horizon = until();
  while (!queue_.empty() && queue_.next() <= horizon) {
    const ChunkEvent event = queue_.pop();
    now_ = event.when;
    switch (static_cast<What>(event.what)) {
      case kAsk:
        ask(event.where);
        break;
      case kPortFree:
        port_free(event.where);
        break;
      case kThrough:
        through(event.where);
        horizon = until();  // whoever was told may have done anything
        break;
    }
  }
  running_ = false;
}

void ChunkNetwork::reschedule() {
  if (queue_.next() >= scheduled_) return;
  scheduled_ = queue_.next();
  engine_.queue().at(time_point(scheduled_), *this, ++version_);
}

// ---- stages --------------------------------------------------------------------------------

/// Goes on with the next slice as far as is known now.
void ChunkNetwork::advance(const At& at) {
  const auto& [index, stage, operation] = at;
  for (;;) {
    const ChunkPass& pass = pass_of(operation, stage);
    const bool receives = operation.ring ? stage.step > 0 : stage.inputs > 0;
    const bool sends = operation.ring ? stage.step < operation.sends : stage.outputs > 0;
    ChunkTime ready = stage.free;
    stage.input_end = 0;
    if (receives && !inputs_are_there(stage, operation.hop, ready)) {
      stage.state = State::WaitsForInput;
      return;
    }
    if (sends) {
      if (!outputs_have_room(stage, ready)) {
        stage.state = State::WaitsForCredit;
        return;
      }
      stage.state = State::Busy;
      stage.asked = std::max(ready + pass.before, now_);
      stage.output = 0;
      stage.turns = pass.turns;
      push(stage.asked, kAsk, index);
      return;
    }
    // What streams in is taken as it comes; a ring's last step is one like the others.
    const ChunkTime end = operation.ring ? ready + pass.receive
                                         : std::max(stage.free + pass.receive, stage.input_end);
    if (!slice_over(at, true, end)) return;
  }
}

inline bool ChunkNetwork::inputs_are_there(Stage& stage, ChunkTime hop, ChunkTime& ready) const {
  for (std::uint32_t i = 0; i < stage.inputs; ++i) {
    const Link& link = links_[input_of(stage, i)];
    if (link.sent == link.taken) return false;
    const Slot& slot = slots_[link.first_slot + link.take_slot];
    const ChunkTime way = link.local ? 0 : hop;
    ready = std::max(ready, slot.begin + way);
    stage.input_end = std::max(stage.input_end, slot.end + way);
  }
  return true;
}

inline bool ChunkNetwork::outputs_have_room(const Stage& stage, ChunkTime& ready) const {
  for (std::uint32_t i = 0; i < stage.outputs; ++i) {
    const Link& link = links_[output_of(stage, i)];
    if (link.sent - link.taken == link.window) return false;
    ready = std::max(ready, slots_[link.first_slot + link.send_slot].begin);
  }
  return true;
}

/// Gives the inputs' places back and counts on. False when the stage has done its last slice.
bool ChunkNetwork::slice_over(const At& at, bool received, ChunkTime end) {
  const auto& [index, stage, operation] = at;
  stage.free = end;
  for (std::uint32_t i = 0; received && i < stage.inputs; ++i) {
    Link& link = links_[input_of(stage, i)];
    slots_[link.first_slot + link.take_slot].begin = end;
    if (++link.take_slot == link.window) link.take_slot = 0;
    ++link.taken;
    if (stages_[link.from].state == State::WaitsForCredit) advance(this->at(link.from));
  }
  if (++stage.slice < pass_of(operation, stage).slices) return true;
  stage.slice = 0;
  if (++stage.step < (operation.ring ? operation.sends + 1 : 1)) return true;
  stage.step = 0;
  if (++stage.pass < operation.passes) return true;
  stage.state = State::Busy;  // for ever
  push(end, kThrough, index);
  return false;
}

// ---- ports ---------------------------------------------------------------------------------

void ChunkNetwork::ask(std::uint32_t index) {
  Stage& stage = stages_[index];
  Port& port = ports_[stage.port];
  const bool idle = port.first == kNowhere && port.out_free <= now_;
  if (idle || links_[output_of(stage, stage.output)].local) {
    serve(at(index));
    return;
  }
  stage.next = kNowhere;
  if (port.first == kNowhere) {
    port.first = index;
    push(port.out_free, kPortFree, stage.port);
  } else {
    stages_[port.last].next = index;
  }
  port.last = index;
}

void ChunkNetwork::port_free(std::uint32_t index) {
  Port& port = ports_[index];
  const std::uint32_t stage = port.first;
  port.first = stages_[stage].next;
  serve(at(stage));
  if (port.first != kNowhere) push(port.out_free, kPortFree, index);
}

std::uint32_t ChunkNetwork::add_way(ChunkWay way) {
  for (const ChunkWay::Part& part : way.links) {
    if (part.link >= way_free_.size()) way_free_.resize(part.link + 1);
  }
  ways_.push_back(std::move(way));
  return static_cast<std::uint32_t>(ways_.size() - 1);
}

/// When the last of the way's links has moved a turn; each serves them as they come.
ChunkTime ChunkNetwork::through_way(const ChunkWay& way, const ChunkPass& pass) {
  ChunkTime finish = 0;
  const double turn = static_cast<double>(pass.nic) / pass.turns;
  for (const ChunkWay::Part& part : way.links) {
    ChunkTime& free = way_free_[part.link];
    free = std::max(free, now_) + std::llround(turn * part.times);
    finish = std::max(finish, free);
  }
  return finish;
}

/// One turn: bytes enter the receiver's port as they leave the sender's, when it is free for them.
void ChunkNetwork::serve(const At& at) {
  const auto& [index, stage, operation] = at;
  const Link& link = links_[output_of(stage, stage.output)];
  if (link.local) {
    send(at, now_, now_);
    return;
  }
  const ChunkPass& pass = pass_of(operation, stage);
  ChunkTime turn = &pass == &operation.full ? operation.full_turn : operation.last_turn;
  Port& source = ports_[stage.port];
  Port& target = ports_[link.to_port];
  const double share = std::min(source.share, target.share);
  if (share < 1) turn = std::llround(static_cast<double>(turn) / share);
  source.out_free = now_ + turn;
  target.in_free = std::max(target.in_free, now_) + turn;
  ChunkTime finish = target.in_free;
  if (link.way != kNowhere) finish = std::max(finish, through_way(ways_[link.way], pass));
  const double slowness = std::max(source.slowness, target.slowness);
  if (slowness > 1 && operation.by_kernel) {
    const ChunkTime more = std::llround(static_cast<double>(turn) * (slowness - 1));
    finish += more;
    stage.asked += more;
  }
  if (--stage.turns > 0) {
    push(finish, kAsk, index);
  } else {
    send(at, now_, finish);
  }
}

/// The slice's last byte is out at `finish`: the receiver may know of it.
void ChunkNetwork::send(const At& at, ChunkTime begin, ChunkTime finish) {
  const auto& [index, stage, operation] = at;
  const ChunkPass& pass = pass_of(operation, stage);
  const ChunkTime end = std::max({stage.asked + pass.work, finish, stage.input_end});
  Link& link = links_[output_of(stage, stage.output)];
  if (link.to == kNowhere) {
    ++link.taken;
  } else {
    const ChunkTime more = link.way == kNowhere ? 0 : ways_[link.way].latency;
    slots_[link.first_slot + link.send_slot] = {(operation.ring ? end : begin) + more, end + more};
    if (++link.send_slot == link.window) link.send_slot = 0;
  }
  ++link.sent;
  ++messages_;
  if (link.to != kNowhere && stages_[link.to].state == State::WaitsForInput) {
    advance(this->at(link.to));
  }
  stage.free = std::max(stage.free, end);
  if (++stage.output < stage.outputs) {
    stage.turns = pass.turns;
    push(finish, kAsk, index);
    return;
  }
  const bool received = !operation.ring || stage.step > 0;
  if (slice_over(at, received, stage.free)) advance(at);
}

}  // namespace foretrace::sim
