#include "sim/stream.h"

#include <algorithm>

#include "sim/nccl.h"

namespace foretrace::sim {

void StreamQueue::push(Work work) {
  ++issued_;
  if (legacy_ != nullptr) work.legacy_count = legacy_->issued();
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
        finish(Kind::Copy);
      } else {
        engine_.start_flow(copy.path, copy.size, *this, kCopyArrived);
      }
      return;
    }
    case kCopyArrived:
      finish(Kind::Copy);
      return;
  }
}

void StreamQueue::wake() {
  if (state_ != State::Blocked) return;
  // Not at once: whoever wakes us is in the middle of its own step.
  state_ = State::Idle;
  engine_.queue().at(engine_.now(), *this, kReadvance);
}

/// Runs down the queue as far as it goes at this moment. Entries that take no time are a loop, not
/// a recursion: a stream may hold a million records.
void StreamQueue::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (state_ == State::Idle && !queue_.empty()) {
    if (waits_for_other_streams()) {
      state_ = State::Blocked;
      break;
    }
    const Work& work = queue_.front();
    const TimePoint earliest = std::max(work.available, ready_ + gap_before(work));
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
    return true;
  }
  if (const auto* nccl = std::get_if<NcclWork>(&queue_.front().what)) {
    const NcclLaunch::Order& after = nccl->launch->after();
    if (after.stream != nullptr && after.stream->completed() < after.count) {
      after.stream->wait_for_count(after.count, *this);
      return true;
    }
  }
  if (peer_counts_.empty()) return false;
  for (const auto& [peer, count] : peer_counts_.front()) {
    if (peer->completed() < count) {
      peer->wait_for_count(count, *this);
      return true;
    }
  }
  return false;
}

/// What the hardware needs between the previous entry and this one.
Duration StreamQueue::gap_before(const Work& work) const {
  if (previous_ == Kind::None) return Duration{0};
  const Duration events = event_between_ ? machine_.time(Param::EventGap) : Duration{0};
  const bool copy = std::holds_alternative<CopyWork>(work.what);
  const bool kernel =
      std::holds_alternative<KernelWork>(work.what) || std::holds_alternative<NcclWork>(work.what);
  if (!copy && !kernel) return Duration{0};
  if (copy && previous_ == Kind::Copy) return machine_.time(Param::CopyGap) + events;
  if (kernel && previous_ == Kind::Kernel) return machine_.time(Param::KernelGap) + events;
  if (previous_ == Kind::Event) {
    return machine_.time(copy || after_copy_ ? Param::EventLatencyCopy : Param::EventLatency);
  }
  return machine_.time(Param::CopyAfterKernel) + events;
}

void StreamQueue::begin(const Work& work) {
  const auto begin_kernel = [&](const KernelWork& kernel) {
    state_ = State::Running;
    device_.start(*this, kernel.cost);
  };
  const auto begin_copy = [&](const CopyWork& copy) {
    state_ = State::Running;
    device_.acquire_copy_engine(static_cast<std::uint32_t>(copy.engine), *this);
  };
  const auto begin_nccl = [&](const NcclWork& nccl) {
    state_ = State::Running;
    device_.occupy(*this, nccl.launch->channels());
  };
  const auto record = [&](const RecordWork& entry) {
    const TicketRef ticket = entry.ticket;
    event_between_ = true;
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
    if (ticket.when > ready_ && ticket.when >= work.available) {  // it held the stream up
      previous_ = Kind::Event;
      after_copy_ = ticket.after_copy;
      ready_ = ticket.when;
    }
    event_between_ = true;
    pop();
  };
  const auto mark = [&](const MarkerWork&) { pop(); };
  std::visit(Overloaded{begin_kernel, begin_copy, begin_nccl, record, wait, mark}, work.what);
}

void StreamQueue::kernel_began() {
  began_ = engine_.now();
  if (const auto* nccl = std::get_if<NcclWork>(&queue_.front().what)) nccl->launch->began();
}

void StreamQueue::kernel_ended() { finish(Kind::Kernel); }

void StreamQueue::copy_engine_free() {
  began_ = engine_.now();
  engine_.queue().at(began_ + std::get<CopyWork>(queue_.front().what).latency, *this,
                     kCopyLatencyOver);
}

/// The front entry, a kernel or a copy, has ended.
void StreamQueue::finish(Kind kind) {
  const Work& work = queue_.front();
  std::uint16_t detail = 0;
  if (const auto* nccl = std::get_if<NcclWork>(&work.what)) {
    detail = nccl->launch->detail();
    for (const Execution& part : nccl->launch->executions()) {
      recorder_.span(lane_, part, 1, began_, engine_.now(), detail);
    }
  } else {
    recorder_.span(lane_, work.execution, work.part, began_, engine_.now(), detail);
  }
  const auto* copy = std::get_if<CopyWork>(&work.what);
  const auto engine = copy != nullptr ? static_cast<std::uint32_t>(copy->engine) : 0;
  previous_ = kind;
  event_between_ = false;
  ready_ = engine_.now();
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
  ticket.after_copy = previous_ == Kind::Copy;
  ticket.when = engine_.now();
  for (Waiter* waiter : std::exchange(ticket.waiters, {})) waiter->wake();
}

}  // namespace foretrace::sim
