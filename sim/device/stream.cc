#include "sim/device/stream.h"

#include <algorithm>

#include "sim/chunk/network.h"
#include "sim/device/graph.h"
#include "sim/nccl/launch.h"

namespace foretrace::sim {
namespace {

/// Copies of a kind go one after the other. What the driver fetches piece by piece leaves the
/// engine to others between its pieces, and waits for its like alone.
std::uint32_t engine_of(const CopyWork& copy) {
  constexpr auto kPieces = static_cast<std::uint32_t>(CopyEngineKind::PeerToPeer) + 1;
  return copy.in_pieces ? kPieces : static_cast<std::uint32_t>(copy.engine);
}

cost::Entry entry_of(const Work::What& what) {
  using cost::Entry;
  const auto no_time = [](const auto&) { return Entry::NoTime; };
  return std::visit(Overloaded{[](const KernelWork&) { return Entry::Kernel; },
                               [](const NcclWork&) { return Entry::Nccl; },
                               [](const CopyWork&) { return Entry::Copy; },
                               [](const HostFuncWork&) { return Entry::HostFunction; },
                               [](const std::shared_ptr<GraphWork>&) { return Entry::Graph; },
                               [](const RecordWork&) { return Entry::Record; },
                               [&](const WaitWork& wait) { return no_time(wait); },
                               [&](const MarkerWork& marker) { return no_time(marker); },
                               [&](const FaultWork& fault) { return no_time(fault); }},
                    what);
}

}  // namespace

void StreamQueue::push(Work&& work) {
  ++issued_;
  const auto* record = std::get_if<RecordWork>(&work.what);
  const bool tells_its_end = record != nullptr && record->ticket->timed;
  if (!tells_its_end && !std::holds_alternative<MarkerWork>(work.what)) last_work_ = issued_;
  if (legacy_ != nullptr) work.legacy_count = legacy_->issued();
  if (hardware_queue_ != nullptr) hardware_queue_->push(*this);
  queue_.push_back(std::move(work));
  if (!blocking_peers_.empty()) {
    auto& counts = peer_counts_.emplace_back();
    for (StreamQueue* peer : blocking_peers_) {
      if (peer->pending() > 0) counts.emplace_back(peer, peer->issued());
    }
  }
  if (state_ == State::Idle) advance();
}

void StreamQueue::wait_for_count(std::uint64_t count, Waiter& waiter) {
  waiters_.emplace_back(count, &waiter);
}

void StreamQueue::fire(std::uint64_t what) {
  switch (static_cast<Event>(what)) {
    case kAwake:
      state_ = State::Idle;
      advance();
      return;
    case kReadvance:
      if (state_ == State::Idle) advance();
      return;
    case kCopyLatencyOver: {
      const auto& copy = std::get<CopyWork>(queue_.front().what);
      if (copy.size.count == 0) {
        finish(cost::Before::Copy);
      } else if (const ChunkRoute& chunks = copy.chunks; chunks.network != nullptr) {
        const auto id =
            chunks.network->add(copy_program(copy.size.count, chunks.copy_rate, chunks.port_rate),
                                {chunks.from, chunks.to}, *this);
        chunks.network->begin(id, 0);
      } else {
        engine_.start_flow(copy.path, copy.size, *this, kCopyArrived);
      }
      return;
    }
    case kCopyArrived:
      finish(cost::Before::Copy);
      return;
    case kNcclBegins:
      std::get<NcclWork>(queue_.front().what).launch->began();
      return;
  }
}

void StreamQueue::wake() {
  if (state_ != State::Blocked) return;
  if (const StreamQueue* other = std::exchange(follows_, nullptr);
      other != nullptr && queue_.front().available <= engine_.now()) {
    follow(*other);
  }
  // Not at once: whoever wakes us is in the middle of its own step.
  state_ = State::Idle;
  engine_.queue().at(engine_.now(), *this, kReadvance);
}

/// The legacy default stream's order held this one up: behind kernels as behind an event, behind
/// copies and host functions as behind those of its own.
void StreamQueue::follow(const StreamQueue& other) {
  const bool of_its_own =
      other.previous_ == cost::Before::Copy || other.previous_ == cost::Before::HostFunction;
  const bool is_legacy = legacy_ == nullptr;
  previous_ = is_legacy ? cost::Before::OtherStreams : cost::Before::PlainEvent;
  if (of_its_own) previous_ = other.previous_;
  if (other.previous_ == cost::Before::Copy) previous_copy_ = other.previous_copy_;
  waited_for_ = other.previous_;
  ready_ = engine_.now();
}

/// Runs down the queue as far as it goes at this moment. Entries that take no time are a loop, not
/// a recursion: a stream may hold a million records.
void StreamQueue::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (state_ == State::Idle && !queue_.empty()) {
    if (waits_for_other_streams() || waits_for_hardware_queue()) {
      state_ = State::Blocked;
      break;
    }
    const Work& work = queue_.front();
    const TimePoint earliest =
        std::max({work.available, ready_ + gap_before(work), peer_event_seen_by(work)});
    if (earliest > engine_.now()) {
      state_ = State::Sleeping;
      engine_.queue().at(earliest, *this, kAwake);
      break;
    }
    begin(work);
  }
  advancing_ = false;
}

bool StreamQueue::waits_for_other_streams() {
  if (legacy_ != nullptr && legacy_->completed() < queue_.front().legacy_count) {
    legacy_->wait_for_count(queue_.front().legacy_count, *this);
    follows_ = legacy_;
    return true;
  }
  if (const auto* nccl = std::get_if<NcclWork>(&queue_.front().what)) {
    const NcclLaunch::Order& after = nccl->launch->after();
    if (after.stream != nullptr && after.stream->completed() < after.count) {
      after.stream->wait_for_count(after.count, *this);
      return true;
    }
  }
  if (const auto* graph = std::get_if<std::shared_ptr<GraphWork>>(&queue_.front().what)) {
    if ((*graph)->after != nullptr && (*graph)->after->completed() < (*graph)->after_count) {
      (*graph)->after->wait_for_count((*graph)->after_count, *this);
      return true;
    }
  }
  if (peer_counts_.empty()) return false;
  for (const auto& [peer, count] : peer_counts_.front()) {
    if (peer->completed() < count) {
      peer->wait_for_count(count, *this);
      follows_ = peer;
      return true;
    }
  }
  return false;
}

bool StreamQueue::waits_for_peers() const {
  return std::ranges::any_of(blocking_peers_,
                             [](const StreamQueue* peer) { return peer->pending() > 0; });
}

bool StreamQueue::waits_for_hardware_queue() {
  return hardware_queue_ != nullptr && !hardware_queue_->is_first(*this);
}

/// The entry has begun: those behind it, of other streams too, may follow.
void StreamQueue::leave_hardware_queue() {
  if (hardware_queue_ != nullptr) hardware_queue_->pop();
}

std::unique_ptr<StreamQueue> StreamQueue::make_chain(GraphExec& graph) const {
  auto chain = std::make_unique<StreamQueue>(engine_, device_, context_, recorder_, machine_,
                                             declared_, lane_);
  chain->graph_ = &graph;
  return chain;
}

/// What the hardware needs between the previous entry and this one.
Duration StreamQueue::gap_before(const Work& work) const {
  cost::Neighbours neighbours{.before = previous_,
                              .next = entry_of(work.what),
                              .in_graph = graph_ != nullptr,
                              .event_between = event_between_};
  const bool held_up = previous_ == cost::Before::Event || previous_ == cost::Before::PlainEvent;
  if (held_up) neighbours.waited_for = waited_for_;
  const auto add = [&](const PreviousCopy& copy) {
    neighbours.upload |= copy.engine == CopyEngineKind::HostToDevice;
    neighbours.copied = std::max(neighbours.copied, copy.size);
    neighbours.in_stream |= copy.in_stream;
  };
  if (previous_ == cost::Before::Copy) add(previous_copy_);
  if (const auto* copy = std::get_if<CopyWork>(&work.what)) {
    neighbours.other_engine =
        previous_ == cost::Before::Copy && copy->engine != previous_copy_.engine;
    add({copy->engine, copy->size, copy->in_stream});
  }
  return context_.gaps.between(neighbours);
}

/// Kernels, and records that hand it on, know later of what another GPU has done; copies do not
/// (peers_of_threads.py of hw/laboratory/causes on two H200s).
TimePoint StreamQueue::peer_event_seen_by(const Work& work) const {
  const cost::Entry entry = entry_of(work.what);
  const bool waits = entry == cost::Entry::Kernel || entry == cost::Entry::Nccl ||
                     entry == cost::Entry::Graph || entry == cost::Entry::Record;
  if (peer_event_.event == cost::Before::Nothing || !waits) return {};
  Reading read{machine_};
  const cost::Neighbours neighbours{
      .before = peer_event_.event, .next = entry, .waited_for = peer_event_.after};
  return peer_event_.when + cost::hand_over_to_peer(read) + context_.gaps.between(neighbours);
}

void StreamQueue::begin(const Work& work) {
  const auto begin_kernel = [&](const KernelWork& kernel) {
    state_ = State::Running;
    device_.start(*this, kernel.cost, declared_.priority, graph_ != nullptr);
  };
  const auto begin_copy = [&](const CopyWork& copy) {
    state_ = State::Running;
    leave_hardware_queue();
    device_.acquire_copy_engine(engine_of(copy), *this);
  };
  const auto begin_nccl = [&](const NcclWork& nccl) {
    state_ = State::Running;
    device_.occupy(*this, nccl.launch->channels(), declared_.priority);
  };
  const auto record = [&](const RecordWork& entry) {
    const TicketRef ticket = entry.ticket;
    event_between_ = event_between_ || ticket->timed;
    leave_hardware_queue();
    complete_ticket(*ticket);
    pop();
  };
  const auto wait = [&](const WaitWork& entry) {
    Ticket& ticket = *entry.ticket;
    if (!ticket.done) {
      state_ = State::Blocked;
      ticket.waiters.push_back(this);
      return;
    }
    cost::Before event = ticket.timed ? cost::Before::Event : cost::Before::PlainEvent;
    if (ticket.after_copy) event = cost::Before::EventAfterCopy;
    if (ticket.when > ready_ && ticket.when >= work.available) {  // it held the stream up
      previous_ = event;
      waited_for_ = ticket.after;
      ready_ = ticket.when;
    }
    const bool elsewhere = ticket.stream != nullptr && &ticket.stream->device_ != &device_;
    if (elsewhere && ticket.when >= peer_event_.when) {
      peer_event_ = {event, ticket.after, ticket.when};
    }
    event_between_ = true;
    leave_hardware_queue();
    pop();
  };
  const auto mark = [&](const MarkerWork&) {
    leave_hardware_queue();
    pop();
  };
  const auto call_host = [&](const HostFuncWork& function) {
    state_ = State::Running;
    leave_hardware_queue();
    context_.host_functions.run(function, work.available, previous_ == cost::Before::HostFunction,
                                *this);
  };
  const auto fault = [&](const FaultWork&) {
    state_ = State::Running;  // for ever: nothing runs in a lost context
    context_.lost(work.execution);
  };
  const auto begin_graph = [&](const std::shared_ptr<GraphWork>& graph) {
    state_ = State::Running;
    leave_hardware_queue();
    graph->graph->start(*graph, work.execution, lane_, *this);
  };
  std::visit(Overloaded{begin_kernel, begin_copy, begin_nccl, record, wait, mark, call_host, fault,
                        begin_graph},
             work.what);
}

void StreamQueue::graph_ended() { finish(cost::Before::Kernel); }

void StreamQueue::kernel_began() {
  began_ = engine_.now();
  leave_hardware_queue();
  if (graph_ != nullptr) part_ = graph_->next_part();
  const auto* const nccl = std::get_if<NcclWork>(&queue_.front().what);
  if (nccl == nullptr) return;
  if (const Duration cold = nccl->launch->cold(); cold > Duration{0}) {
    engine_.queue().at(engine_.now() + cold, *this, kNcclBegins);
  } else {
    nccl->launch->began();
  }
}

void StreamQueue::kernel_ended() {
  const bool nccl = std::holds_alternative<NcclWork>(queue_.front().what);
  finish(nccl ? cost::Before::Nccl : cost::Before::Kernel);
}

void StreamQueue::copy_engine_free() {
  began_ = engine_.now();
  if (graph_ != nullptr) part_ = graph_->next_part();
  const auto& copy = std::get<CopyWork>(queue_.front().what);
  began_ += copy.hand_over;
  Duration latency = copy.latency;
  const auto longer = [&](Param by) { return machine_.has(by) ? machine_.time(by) : Duration{0}; };
  const bool to_host = copy.engine == CopyEngineKind::DeviceToHost;
  constexpr auto kUpload = static_cast<std::uint32_t>(CopyEngineKind::HostToDevice);
  if (to_host && device_.copy_engine_is_busy(kUpload)) latency += longer(Param::DuplexCopy);
  if (to_host && device_.memory_is_saturated()) {
    latency += longer(Param::SaturatedCopy);
    const bool was_idle = queue_.front().available >= ready_;
    if (was_idle) began_ += longer(Param::SaturatedCopyIdle);
  }
  engine_.queue().at(began_ + latency, *this, kCopyLatencyOver);
}

void StreamQueue::host_function_began() {
  began_ = engine_.now();
  if (graph_ != nullptr) part_ = graph_->next_part();
}

/// Of its span; a NCCL launch knows those of its operations itself.
std::uint32_t StreamQueue::detail_of(const Work& work) const {
  if (const auto* kernel = std::get_if<KernelWork>(&work.what)) return kernel->detail;
  if (const auto* copy = std::get_if<CopyWork>(&work.what)) return copy->detail;
  return 0;
}

/// Of the front entry, which has ended. A graph's nodes are spans of its launch.
void StreamQueue::record_spans(const Work& work) {
  if (std::holds_alternative<std::shared_ptr<GraphWork>>(work.what)) return;
  const auto* nccl = std::get_if<NcclWork>(&work.what);
  if (nccl != nullptr && nccl->launch->joined() > began_) {
    recorder_.wait(graph_ != nullptr ? graph_->lane() : lane_, began_, nccl->launch->joined());
  }
  if (graph_ != nullptr) {
    const std::uint32_t detail =
        nccl != nullptr ? nccl->launch->operations().front().detail : detail_of(work);
    recorder_.span(graph_->lane(), graph_->execution(), part_, began_, engine_.now(), detail);
  } else if (nccl != nullptr) {
    for (const NcclLaunch::Operation& part : nccl->launch->operations()) {
      recorder_.span(lane_, part.execution, 1, began_, engine_.now(), part.detail);
    }
  } else {
    recorder_.span(lane_, work.execution, work.part, began_, engine_.now(), detail_of(work));
  }
}

/// The front entry, something that takes time, has ended.
void StreamQueue::finish(cost::Before what) {
  const Work& work = queue_.front();
  record_spans(work);
  const auto* copy = std::get_if<CopyWork>(&work.what);
  const auto engine = copy != nullptr ? engine_of(*copy) : 0;
  previous_ = what;
  if (copy != nullptr) previous_copy_ = {copy->engine, copy->size, copy->in_stream};
  event_between_ = false;
  peer_event_ = {};
  ready_ = engine_.now() + (copy != nullptr ? copy->hand_over : Duration{0});
  state_ = State::Idle;
  pop();
  if (copy != nullptr) device_.release_copy_engine(engine);
  advance();
}

void StreamQueue::pop() {
  queue_.pop_front();
  if (!peer_counts_.empty()) peer_counts_.pop_front();
  ++completed_;
  if (waiters_.empty()) return;
  std::vector<Waiter*> woken;
  std::erase_if(waiters_, [&](const auto& entry) {
    if (entry.first > completed_) return false;
    woken.push_back(entry.second);
    return true;
  });
  for (Waiter* waiter : woken) waiter->wake();
}

void StreamQueue::complete_ticket(Ticket& ticket) {
  ticket.done = true;
  ticket.after = previous_;
  ticket.after_copy = previous_ == cost::Before::Copy;
  ticket.when = engine_.now();
  for (Waiter* waiter : std::exchange(ticket.waiters, {})) waiter->wake();
}

}  // namespace foretrace::sim
