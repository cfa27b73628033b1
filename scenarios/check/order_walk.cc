#include "scenarios/check/order_walk.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "scenarios/program/environment.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

/// 64 MiB of clocks: where hundreds of ranks with many streams are cut, whatever the limit says.
constexpr std::uint64_t kMostClockEntries = std::uint64_t{16} << 20;
/// A third of a second: where thousands of threads use one stream.
constexpr std::uint64_t kMostJoinedEntries = std::uint64_t{1} << 28;

}  // namespace

OrderWalk::OrderWalk(const Program& program, const OrderOptions& options, const OrderFacts& known)
    : program_{program},
      options_{options},
      known_{known},
      launches_block_{blocks_launches(program.environment)},
      graph_{program, options.mode, known},
      barriers_(program.barriers.size()) {
  for (std::uint32_t t = 0; t < program.threads.size(); ++t) {
    for (const std::uint32_t process : program.threads[t].processes) {
      Thread& thread = threads_.emplace_back();
      thread.declared = &program.threads[t];
      thread.process = process;
      thread.lane = graph_.add_host_lane(process, t);
      thread.frames.push_back({&thread.declared->ops, 0, nullptr, 1, 0});
      thread.variables = {process};
    }
  }
  for (const Communicator& communicator : program.communicators) {
    comms_.emplace_back(communicator.members, options.connections_serve_both);
  }
}

void OrderWalk::run() {
  if (options_.seed > 0) return run_mixed(options_.seed);
  for (bool goes_on = true; goes_on && !is_cut_;) {
    goes_on = false;
    for (Thread& thread : threads_) goes_on = step(thread) || goes_on;
  }
}

/// One of many orders in which threads may come along: bursts, in turns that are shuffled. In every
/// other one streams are behind: a host thread takes a signal before a host function does.
void OrderWalk::run_mixed(std::uint32_t seed) {
  if (seed % 2 == 1) graph_.be_late();
  std::minstd_rand random{seed};
  std::vector<std::size_t> turns(threads_.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  for (bool goes_on = true; goes_on && !is_cut_;) {
    goes_on = false;
    for (std::size_t i = turns.size(); i > 1; --i) std::swap(turns[i - 1], turns[random() % i]);
    for (const std::size_t turn : turns) {
      const bool is_short = random() % 2 == 0;
      std::uint64_t burst = is_short ? 1 + random() % 8 : options_.most_operations;
      while (burst-- > 0 && step(threads_[turn])) goes_on = true;
    }
    goes_on = goes_on || graph_.begin_late();
  }
}

HappensBefore OrderWalk::take_result() && {
  const bool all_returned = std::ranges::all_of(
      threads_, [](const Thread& t) { return t.frames.empty() && !t.is_calling; });
  const bool finished = !is_cut_ && all_returned && graph_.all_ended();
  std::map<std::uint32_t, std::string> missing;
  if (!finished && !is_cut_) {
    missing = graph_.missing_partners();
    for (const Thread& thread : threads_) note_connections(thread, missing);
  }
  HappensBefore result = std::move(graph_).take_result();
  result.missing = std::move(missing);
  if (finished) result.unwaited = unwaited_regions();
  result.is_complete = !is_cut_;
  result.is_finished = finished;
  return result;
}

// ---- one host thread -----------------------------------------------------------------------

/// One call begins, or the one it waits in returns. Whether anything happened.
bool OrderWalk::step(Thread& thread) {
  if (thread.is_calling) {
    if (!can_return(thread)) return false;
    go_on(thread);
    return true;
  }
  if (!next_operation(thread)) return false;
  if (++executed_ > options_.most_operations || graph_.clock_entries() > kMostClockEntries ||
      graph_.joined_entries() > kMostJoinedEntries) {
    is_cut_ = true;
    return false;
  }
  thread.is_calling = true;
  thread.call =
      graph_.add_call(thread.lane, thread.current, thread.clock, std::exchange(thread.ended, {}));
  std::visit([&](const auto& op) { run(thread, op); }, thread.current.op->kind);
  const bool is_group_end = std::holds_alternative<NcclGroup>(thread.current.op->kind);
  if (is_group_end) nccl_issue(thread);
  if (can_return(thread)) go_on(thread);
  return true;
}

/// The call has what it waited for: it does what else it does, and returns.
void OrderWalk::go_on(Thread& thread) {
  while (can_return(thread)) {
    if (nccl_goes_on(thread)) continue;
    return_from(thread);
    return;
  }
}

/// Goes through blocks to the next call: an operation, or the end of a group.
bool OrderWalk::next_operation(Thread& thread) {
  while (!thread.frames.empty()) {
    Frame& frame = thread.frames.back();
    if (frame.position == frame.block->size()) {
      if (leave(thread)) return true;
      continue;
    }
    const Op& op = (*frame.block)[frame.position++];
    if (block_of(op.kind) != nullptr) {
      enter(thread, op, frame.instance);
      continue;
    }
    thread.current = {&op, frame.instance};
    return true;
  }
  return false;
}

void OrderWalk::enter(Thread& thread, const Op& op, std::uint64_t instance) {
  std::uint64_t times = 1;
  if (const auto* repeat = std::get_if<Repeat>(&op.kind)) {
    times = repeat->times;
    if (times == 0 || is_void(repeat->ops, true)) return;
    thread.variables.push_back(0);
  } else if (std::holds_alternative<NcclGroup>(op.kind)) {
    ++thread.group_depth;
  } else if (std::holds_alternative<GraphCapture>(op.kind)) {
    thread.capture.emplace();
  } else if (std::holds_alternative<Region>(op.kind)) {
    begin_region(thread, op);
  }
  thread.frames.push_back({block_of(op.kind), 0, &op, times, instance * times});
}

/// The next iteration, or out of the block. Whether its end is a call: that of a group.
bool OrderWalk::leave(Thread& thread) {
  Frame& frame = thread.frames.back();
  if (frame.left > 1) {
    --frame.left;
    ++frame.instance;
    ++thread.variables.back();
    frame.position = 0;
    return false;
  }
  const Frame done = frame;
  thread.frames.pop_back();
  if (done.owner == nullptr) return false;
  const OpKind& kind = done.owner->kind;
  if (std::holds_alternative<Repeat>(kind)) {
    thread.variables.pop_back();
  } else if (const auto* capture = std::get_if<GraphCapture>(&kind)) {
    const std::uint32_t graph = capture->graph.resolve(thread.variables).value;
    thread.capture->nccl = std::exchange(thread.nccl, {});
    thread.connected = 0;
    graphs_[static_cast<std::uint32_t>(thread.process * program_.graphs.size()) + graph] =
        *std::exchange(thread.capture, {});
  } else if (std::holds_alternative<Region>(kind)) {
    thread.regions.pop_back();
  } else if (std::holds_alternative<NcclGroup>(kind) && --thread.group_depth == 0) {
    thread.current = {done.owner, done.instance};
    return true;
  }
  return false;
}

bool OrderWalk::can_return(const Thread& thread) const {
  if (thread.semaphore && !graph_.can_take(*thread.semaphore)) return false;
  if (thread.meeting != nullptr && thread.meeting->generation == thread.generation) return false;
  const bool connected = std::ranges::all_of(thread.setups,
                                             [](const auto& one) {
                                               return one.first->connections.is_done(one.second);
                                             }) &&
                         std::ranges::all_of(thread.comms, [](const CommState* comm) {
                           return comm->connected == comm->has_connected.size();
                         });
  return connected && std::ranges::all_of(thread.entries, [this](std::uint32_t entry) {
           return graph_.has_ended(entry);
         });
}

void OrderWalk::return_from(Thread& thread) {
  const bool waited = thread.semaphore || thread.meeting != nullptr || !thread.entries.empty();
  if (thread.semaphore) graph_.take(*thread.semaphore, thread.lane, thread.clock);
  if (thread.meeting != nullptr) thread.clock.join(thread.meeting->met);
  for (const std::uint32_t entry : thread.entries) graph_.join_end_of(entry, thread.clock);
  thread.ended.insert(thread.ended.end(), thread.entries.begin(), thread.entries.end());
  thread.entries.clear();
  thread.semaphore.reset();
  thread.meeting = nullptr;
  thread.setups.clear();
  thread.comms.clear();
  graph_.end_call(thread.call);
  graph_.join_end_of(thread.call, thread.clock);
  thread.is_calling = false;
  if (waited) note_wait_in_regions(thread);
}

// ---- host threads among themselves ---------------------------------------------------------

void OrderWalk::arrive(Thread& thread, Meeting& meeting, std::size_t parties) {
  if (meeting.missing == 0) meeting.missing = parties;
  graph_.join_end_of(thread.call, meeting.arriving);
  thread.meeting = &meeting;
  thread.generation = meeting.generation;
  if (--meeting.missing > 0) return;
  meeting.met = std::exchange(meeting.arriving, {});
  ++meeting.generation;
}

void OrderWalk::run(Thread& thread, const HostBarrier& op) {
  arrive(thread, barriers_[op.barrier.value], program_.barriers[op.barrier.value].parties.size());
}

void OrderWalk::run(Thread& thread, const HostSignal& op) {
  OrderClock clock = thread.clock;
  graph_.join_end_of(thread.call, clock);
  graph_.give(semaphore_of(thread, op.signal), thread.lane, clock);
}

void OrderWalk::run(Thread& thread, const HostWait& op) {
  thread.semaphore = semaphore_of(thread, op.signal);
}

std::uint32_t OrderWalk::semaphore_of(const Thread& thread, const SignalRef& signal) const {
  return static_cast<std::uint32_t>(thread.process * program_.signals.size()) +
         signal.resolve(thread.variables).value;
}

// ---- host threads and the device -----------------------------------------------------------

void OrderWalk::wait_for(Thread& thread, const std::vector<std::uint32_t>& entries) {
  thread.entries.insert(thread.entries.end(), entries.begin(), entries.end());
}

void OrderWalk::wait_for_stream(Thread& thread, std::uint32_t stream, bool of_all_threads) {
  wait_for(thread, graph_.queued_before(thread.call, stream, thread.clock, of_all_threads));
}

void OrderWalk::wait_for_device(Thread& thread, std::uint32_t device) {
  for (std::uint32_t s = 0; s < program_.streams.size(); ++s) {
    if (program_.streams[s].device == device) wait_for_stream(thread, s, true);
  }
}

void OrderWalk::run(Thread& thread, const EventSynchronize& op) {
  wait_for(thread, latest_record(thread, op.event));
}

void OrderWalk::run(Thread& thread, const EventWaitFor& op) {
  wait_for(thread, latest_record(thread, op.event));
}

void OrderWalk::run(Thread& thread, const StreamSynchronize& op) {
  const std::uint32_t stream = op.stream.resolve(thread.variables).value;
  wait_for_stream(thread, stream);
  const Stream& declared = program_.streams[stream];
  if (declared.kind != StreamKind::LegacyDefault || graph_.mode() == OrderMode::Guaranteed) return;
  for (std::uint32_t s = 0; s < program_.streams.size(); ++s) {  // observed, not documented
    const Stream& other = program_.streams[s];
    if (other.device == declared.device && other.kind != StreamKind::NonBlocking) {
      wait_for_stream(thread, s, true);
    }
  }
}

void OrderWalk::run(Thread& thread, const DeviceSynchronize& op) {
  wait_for_device(thread, static_cast<std::uint32_t>(op.device.eval(thread.variables)));
}

void OrderWalk::run(Thread& thread, const Free& op) {
  wait_for_device(thread, buffer(thread, op.buffer).device);
}

void OrderWalk::run(Thread& thread, const HostUnregister&) {
  for (std::uint32_t d = 0; d < program_.devices; ++d) wait_for_device(thread, d);
}

void OrderWalk::run(Thread& thread, const NcclCommInit& op) {
  const CommHandle& handle = program_.comms[op.comm.resolve(thread.variables).value];
  CommState& comm = comms_[handle.communicator];
  const std::uint32_t rank = rank_of(handle, thread.process);
  if (comm.has_arrived[rank]) return;
  comm.has_arrived[rank] = true;
  arrive(thread, comm.made, comm.has_arrived.size());
}

void OrderWalk::run(Thread& thread, const NcclCommDestroy& op) {
  if (graph_.mode() == OrderMode::Guaranteed) return;  // whether it waits is not documented
  wait_for_device(thread, program_.comms[op.comm.resolve(thread.variables).value].device);
}

const Buffer& OrderWalk::buffer(const Thread& thread, const BufferRef& ref) const {
  return program_.buffers[ref.resolve(thread.variables).value];
}

}  // namespace foretrace
