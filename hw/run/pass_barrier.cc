#include "hw/run/pass_barrier.h"

#include <new>

namespace foretrace::hw {

std::size_t SharedState::bytes(std::size_t local_processes, std::size_t host_barriers) {
  return sizeof(Header) + local_processes * sizeof(Progress) + host_barriers * sizeof(BarrierSlot);
}

// The memory is zero when the processes first see it, which is every object's initial state here:
// no process may construct what another one already uses.
SharedState::Header& SharedState::header() const {
  return *std::launder(reinterpret_cast<Header*>(memory_.data()));
}
SharedState::Progress* SharedState::progress_slots() const {
  return std::launder(reinterpret_cast<Progress*>(memory_.data() + sizeof(Header)));
}
BarrierSlot* SharedState::barriers() const {
  return std::launder(reinterpret_cast<BarrierSlot*>(memory_.data() + sizeof(Header) +
                                                     local_processes_ * sizeof(Progress)));
}

SharedState::SharedState(const Processes& processes, std::size_t host_barriers)
    : local_processes_{static_cast<std::size_t>(processes.local_count())},
      memory_{processes, bytes(local_processes_, host_barriers)} {}

std::int64_t SharedState::wait_for_pass(const Processes& processes) {
  if (!processes.one_host()) processes.wait_for_all();
  Header& shared = header();
  shared.pass.arrive_and_wait(static_cast<std::uint32_t>(local_processes_), [&] {
    shared.released_ns.store(now_ns(), std::memory_order_relaxed);
  });
  return shared.released_ns.load(std::memory_order_relaxed);
}

std::uint64_t SharedState::local_progress() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < local_processes_; ++i) {
    total += progress_slots()[i].value.load(std::memory_order_relaxed);
  }
  return total;
}

bool Signals::try_take(SignalId id) {
  auto& count = counts_[id.value];
  std::int64_t seen = count.load(std::memory_order_acquire);
  return seen > 0 && count.compare_exchange_strong(seen, seen - 1, std::memory_order_acquire);
}

bool Signals::wait(SignalId id) {
  bool taken = false;
  spin_until([&] {
    taken = try_take(id);
    return taken || closed_.load(std::memory_order_relaxed);
  });
  return taken;
}

void Signals::reset() {
  for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
}

}  // namespace foretrace::hw
