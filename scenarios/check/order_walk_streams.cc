// What host threads queue on streams: kernels, copies, records and waits, graphs.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scenarios/check/order_walk.h"
#include "scenarios/program/op_facts.h"

namespace foretrace {
namespace {

/// CUDA's: so much of a pageable copy to the device travels in the command stream. cudaMemcpy, seen
/// on H200, waits for its stream all the same before it touches the data.
constexpr Bytes kSmallPageable{64 * 1024};
constexpr std::size_t kLaunchQueueDepth = 1024;  // entries; measured, not documented

}  // namespace

/// Inside a capture nothing is queued: the operation becomes a part of the graph.
std::uint32_t OrderWalk::queue(Thread& thread, std::uint32_t stream, OrderEntry entry) {
  if (entry.work.empty()) entry.work.push_back(thread.current);
  if (!thread.capture) {
    // Whoever waits for its signal has waited for it.
    const bool is_work = entry.role == OrderRole::Work && entry.gives.empty();
    const std::uint32_t added =
        graph_.add_entry(thread.call, stream, thread.clock, std::move(entry));
    wait_for_room(thread, added);
    if (is_work) note_in_regions(thread, added);
    return added;
  }
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(thread.capture->work, entry.work);
  append(thread.capture->takes, entry.takes);
  append(thread.capture->gives, entry.gives);
  return OrderGraph::kNone;
}

/// A stream holds so many entries; whoever queues another one waits. Only those count that are
/// there for certain: nothing is queued for an event that is complete by then. What the simulator
/// lets pass is not held either.
void OrderWalk::wait_for_room(Thread& thread, std::uint32_t added) {
  if (graph_.mode() == OrderMode::Guaranteed) return;
  const OpKind& kind = thread.current.op->kind;
  auto& entries = sure_entries_[graph_.node(added).lane];
  const bool is_held = op_facts(kind).comm == nullptr && !std::holds_alternative<NcclGroup>(kind) &&
                       !std::holds_alternative<MallocAsync>(kind) &&
                       !std::holds_alternative<FreeAsync>(kind);
  if (is_held && entries.size() >= kLaunchQueueDepth) {
    const std::uint32_t leaves = entries[entries.size() - kLaunchQueueDepth];
    if (!graph_.has_ended(leaves)) wait_for(thread, {leaves});
  }
  if (!std::holds_alternative<StreamWaitEvent>(kind)) entries.push_back(added);
}

std::uint32_t OrderWalk::queue(Thread& thread, const StreamRef& stream, OrderEntry entry) {
  return queue(thread, stream.resolve(thread.variables).value, std::move(entry));
}

void OrderWalk::run(Thread& thread, const HostFunc& op) {
  OrderEntry entry;
  if (op.wait) entry.takes.push_back(semaphore_of(thread, *op.wait));
  if (op.signal) entry.gives.push_back(semaphore_of(thread, *op.signal));
  queue(thread, op.stream, std::move(entry));
}

void OrderWalk::run(Thread& thread, const MallocAsync& op) {
  queue(thread, op.stream, {.role = OrderRole::Marker});
}

void OrderWalk::run(Thread& thread, const FreeAsync& op) {
  queue(thread, op.stream, {.role = OrderRole::Marker});
}

// ---- events --------------------------------------------------------------------------------

std::uint32_t OrderWalk::event_of(const Thread& thread, const EventRef& event) const {
  return static_cast<std::uint32_t>(thread.process * program_.events.size()) +
         event.resolve(thread.variables).value;
}

void OrderWalk::run(Thread& thread, const EventRecord& op) {
  const std::uint32_t record = queue(thread, op.stream, {.role = OrderRole::Record});
  if (record == OrderGraph::kNone) return;
  const std::uint32_t event = event_of(thread, op.event);
  graph_.note_recorder(event, record);
  records_[event][graph_.node(record).lane].push_back(record);
}

void OrderWalk::run(Thread& thread, const StreamWaitEvent& op) {
  if (thread.capture) return;
  OrderEntry entry{.role = OrderRole::Marker};
  entry.after = latest_record(thread, op.event);
  // Never recorded: "a functional no-op"; complete for certain: nothing is queued, either.
  if (std::ranges::all_of(entry.after,
                          [&](auto record) { return has_ended_for(thread, record); })) {
    return;
  }
  queue(thread, op.stream, std::move(entry));
}

/// Empty when there is none, or when another thread may have recorded it elsewhere since. A later
/// record on the same stream comes after the one that is known, so that one has ended too.
std::vector<std::uint32_t> OrderWalk::latest_record(const Thread& thread,
                                                    const EventRef& ref) const {
  const std::uint32_t event = event_of(thread, ref);
  const auto found = records_.find(event);
  if (found == records_.end()) return {};
  if (graph_.mode() == OrderMode::Guaranteed) {
    const auto known = known_.recorders.find(event);
    if (known == known_.recorders.end()) return {};  // the earlier walk did not get here
    const auto& recorders = known->second;
    const auto index = static_cast<std::uint32_t>(thread.declared - program_.threads.data());
    const bool all_mine = std::ranges::all_of(
        recorders, [&](const OrderFacts::Place& place) { return place.thread == index; });
    if (recorders.size() > 1 && !all_mine) return {};
  }
  std::uint32_t latest = OrderGraph::kNone;
  for (const auto& [lane, records] : found->second) {
    const std::uint32_t known = graph_.last_known(records, thread.call, thread.clock);
    if (known != OrderGraph::kNone && (latest == OrderGraph::kNone || known > latest)) {
      latest = known;
    }
  }
  if (latest == OrderGraph::kNone) return {};
  return {latest};
}

// ---- copies --------------------------------------------------------------------------------

void OrderWalk::run(Thread& thread, const MemcpyAsync& op) {
  copy(thread, op.stream.resolve(thread.variables).value, op.src, op.dst,
       op.size.eval(thread.variables), false);
}

void OrderWalk::run(Thread& thread, const Memcpy& op) {
  const Buffer& from = buffer(thread, op.src);
  const Buffer& to = buffer(thread, op.dst);
  const std::uint32_t device = to.memory == MemoryKind::Device ? to.device : from.device;
  copy(thread, device, op.src, op.dst, op.size.eval(thread.variables), true);
}

void OrderWalk::copy(Thread& thread, std::uint32_t stream, const BufferRef& src,
                     const BufferRef& dst, Bytes size, bool is_synchronous) {
  const Buffer& from = buffer(thread, src);
  const Buffer& to = buffer(thread, dst);
  const bool from_device = from.memory == MemoryKind::Device;
  const bool to_device = to.memory == MemoryKind::Device;
  const bool is_likely = graph_.mode() == OrderMode::Likely;
  if (!from_device && !to_device) {  // the host copies; whether after the stream is not documented
    if (is_likely && !thread.capture) wait_for_stream(thread, stream);
    return;
  }
  const std::uint32_t entry = queue(thread, stream, {});
  if (entry == OrderGraph::kNone) return;
  bool waits = false;
  if (from_device && to_device) {  // "no host-side synchronization": between devices it is seen
    waits = is_synchronous && from.device != to.device && is_likely;
  } else if ((from_device ? to : from).memory == MemoryKind::Pinned) {
    waits = is_synchronous;
  } else if (to_device) {  // it may return when the data has left the buffer
    waits = is_likely && (is_synchronous || size > kSmallPageable);
  } else {
    waits = true;
  }
  if (waits) wait_for(thread, {entry});
}

void OrderWalk::run(Thread& thread, const MemsetAsync& op) { queue(thread, op.stream, {}); }

/// "Asynchronous with respect to the host except when the target is pinned host memory".
void OrderWalk::run(Thread& thread, const Memset& op) {
  const Buffer& target = buffer(thread, op.dst);
  const std::uint32_t entry = queue(thread, target.device, {});
  if (target.memory != MemoryKind::Device) wait_for(thread, {entry});
}

// ---- graphs --------------------------------------------------------------------------------

/// Signals inside are given when the graph begins: which of its operations are over by then is
/// not followed here. The next launch of the same graph comes after this one.
void OrderWalk::run(Thread& thread, const GraphLaunch& op) {
  const std::uint32_t id = static_cast<std::uint32_t>(thread.process * program_.graphs.size()) +
                           op.graph.resolve(thread.variables).value;
  Captured& graph = graphs_[id];
  OrderEntry entry;
  entry.work = graph.work;
  entry.takes = graph.takes;
  entry.gives = graph.gives;
  if (const auto last = last_before(thread, graph.launches)) entry.after.push_back(*last);
  std::vector<std::pair<CommState*, std::uint32_t>> ranks;
  std::map<std::tuple<std::size_t, const CommState*, std::uint32_t>, std::uint32_t> kernels;
  std::map<std::uint32_t, std::uint32_t> last_on_stream;
  std::map<std::pair<const CommState*, std::uint32_t>, std::uint32_t> last_of_rank;
  for (const NcclCall& call : graph.nccl) {
    const CommHandle& handle = handle_of(call);
    CommState& comm = comms_[handle.communicator];
    const std::uint32_t rank = rank_of(handle, thread.process);
    ranks.emplace_back(&comm, rank);
    entry.work.push_back(call.executed);
    const auto number = static_cast<std::uint32_t>(entry.kernels.size());
    const auto [at, is_new] = kernels.try_emplace({call.issued, &comm, rank}, number);
    if (is_new) {
      OrderKernel& kernel = entry.kernels.emplace_back();
      // One behind the other in a stream, and on a communicator's rank.
      const std::uint32_t stream =
          op_facts(call.executed.op->kind).stream->resolve(call.variables).value;
      const auto follow = [&](auto& last, const auto& key) {
        const auto [before, is_first] = last.try_emplace(key, number);
        if (!is_first && std::ranges::count(kernel.after, before->second) == 0) {
          kernel.after.push_back(before->second);
        }
        before->second = number;
      };
      follow(last_on_stream, stream);
      follow(last_of_rank, std::pair<const CommState*, std::uint32_t>{&comm, rank});
    }
    entry.kernels[at->second].parts.push_back(join_transfer(call, comm, rank));
    if (const auto last = last_before(thread, comm.launches[rank])) {
      entry.after_inside.push_back(*last);
    }
  }
  if (entry.work.empty()) entry.work.push_back(thread.current);
  const std::uint32_t launch = queue(thread, op.stream, std::move(entry));
  graph.launches.push_back(launch);
  for (const auto& [comm, rank] : ranks) comm->launches[rank].push_back(launch);
}

}  // namespace foretrace
