// A host thread of one process: a state machine that walks the program's blocks, pays for every
// call with time, and queues work on streams. One event per operation.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/cost/library.h"
#include "sim/host/caller.h"
#include "sim/host/nccl_calls.h"

namespace foretrace::sim {

class HostThread final : public Caller, ContextUser {
 public:
  HostThread(Engine& engine, World& world, Recorder& recorder, const Machine& machine,
             const Program& program, const foretrace::HostThread& declared, std::uint32_t process);
  void start() { engine_.queue().at(engine_.now(), *this, kNext); }

  // For explaining a deadlock.
  /// A wait that ran out of time; empty when the thread went well.
  const std::string& failure() const { return failure_; }
  bool finished() const { return frames_.empty(); }
  const Op* current() const { return current_.op; }

 private:
  struct Frame {
    const Block* block;
    std::size_t position;
    const Op* owner;         ///< the block's operation; null for the thread's own list
    std::uint64_t left;      ///< iterations still to run, this one included
    std::uint64_t instance;  ///< of operations in this block
    TimePoint began;         ///< regions
  };

  void fire(std::uint64_t what) override;
  void context_lost() override;
  bool reports_fault();
  /// An operation failed here: the thread goes no further.
  void fail(std::string what);

  void next();
  bool leave();

  /// The same of a call that synchronizes with a device, whose pool gives back what nobody uses.
  void synchronize(Priced call, cost::Wait wait, std::uint32_t device, std::string waits_for);
  void returned();

  std::uint32_t context_of(const BufferRef& memory) const;
  /// Of a call whose time grows with a buffer's size.
  Priced sized_call(Param call, Param rate, const BufferRef& memory);
  /// A call that holds the context of the memory's device: `time_of(Reading&, const cost::Call&)`.
  template <class TimeOf>
  Priced holding_call(Param call, const BufferRef& memory, const TimeOf& time_of) {
    cost::Call made = begin_call(call);
    const std::uint32_t device = context_of(memory);
    hold_context(made, device);
    const Priced priced = price([&](Reading& read) { return time_of(read, made); }, made.is_first);
    process_.contexts[device].until = engine_.now() + priced.time;
    return priced;
  }
  struct SizedCall {
    Param call, rate;
  };
  /// The call of CUDA; of NCCL's memory NCCL's, where the machine knows what it costs.
  Priced memory_call(SizedCall by_cuda, SizedCall by_nccl, const BufferRef& memory);
  /// Prices `call`, if it is for an object whose piece is there before and behind it.
  bool shares_piece(bool shares, Param call);
  /// Memory of a device is given back, or asked for: until it is cleared.
  void freed(std::uint32_t device, Bytes size);
  Duration until_cleared(std::uint32_t device) const;
  /// A synchronization of this device: what it takes longer because of its pool.
  Duration trim_pool(std::uint32_t device);
  void end_capture();

  /// `push_work(Duration)`: queues what it makes the device do, by a call that takes so long.
  template <class PushWork>
  void launch(StreamQueue& stream, cost::Call call, const PushWork& push_work);
  /// The work of a kernel that takes `cost_of(Reading&)`.
  template <class CostOf>
  KernelWork kernel_work(const CostOf& cost_of) {
    Reading read{machine_};
    const cost::KernelCost cost = cost_of(read);
    const auto time_of = [&](Reading& again) { return cost_of(again).alone; };
    return {cost, recorder_.banded(*current_.op, SpanOf::Device, {}, time_of)};
  }
  /// Queues a kernel that goes through `memory` of `device`. `cost_of(Reading&, passes)`: what it
  /// takes by what the level-2 cache has of that.
  template <class CostOf>
  void push_kernel(StreamQueue& queue, Duration call, std::uint32_t device,
                   std::span<const UsedMemory> memory, const CostOf& cost_of) {
    const Passes passes = go_through(device, memory);
    push(queue, call, cost::Entry::Kernel, kernel_work([&](Reading& read) {
           return cost_of(read, std::span<const cost::Pass>{passes.data(), passes.size()});
         }));
    goes_through_again(device, memory, cost_of);
  }
  /// What was queued last goes through `memory` at each launch of the graph, if it was captured.
  template <class CostOf>
  void goes_through_again(std::uint32_t device, std::span<const UsedMemory> memory,
                          const CostOf& cost_of) {
    if (capture_ == nullptr) return;
    process_.captured_uses[capture_].push_back(
        {capture_->entries().size() - 1, device, {memory.begin(), memory.end()}, cost_of});
  }
  double bytes_elsewhere(std::uint32_t device, std::span<const UsedMemory> memory) const;
  /// The same, where `by` decides the time: a cost::Product or a cost::LibraryWork.
  template <class By>
  KernelWork kernel_work_of(const By& by, cost::KernelCost (*cost_of)(Reading&, const By&)) {
    const auto time_of = [&](Reading& again) { return cost_of(again, by).alone; };
    return {world_.costs().of(by), recorder_.banded(*current_.op, SpanOf::Device, by, time_of)};
  }
  void copy(StreamQueue& stream, const BufferRef& src, const BufferRef& dst, Bytes size,
            bool synchronous);
  void copy_on_host(const BufferRef& src, const BufferRef& dst, Bytes size);
  void pinned_copy(StreamQueue& stream, const BufferRef& src, const BufferRef& dst, Bytes size,
                   bool synchronous);
  void pageable_copy(StreamQueue& stream, const BufferRef& host, std::uint32_t device, Bytes size,
                     bool to_device, bool synchronous);
  void staged_upload(StreamQueue& stream, const BufferRef& host, std::uint32_t device, Bytes size);
  bool waits_first(StreamQueue& stream);
  void block_for_copy(StreamQueue& stream, Priced call);
  CopyWork copy_work(const cost::Copy& copy, std::uint32_t from, std::uint32_t to);
  void memset(StreamQueue& stream, const BufferRef& dst, Bytes size, bool synchronous);
  cost::MemsetIn memset_in(const StreamQueue& stream, double bytes);
  /// Moves `amount` over `path`; the call under way returns after that and whatever else it began.
  void flow(PathId path, double amount);
  /// Returns `fixed` after what it began; `alone`: what it takes when nobody shares.
  void use_node(Priced alone, Duration fixed, const char* what);
  void wait_for_event(Ticket* ticket, const std::string& name);
  /// Asks whether `ticket` is done; null: the event was never recorded.
  cost::Call query(const TicketRef& ticket);
  void looks_further(cost::Call& query, StreamQueue& queue, std::uint64_t entries);
  bool is_pinned(const BufferRef& ref) const;
  UsedMemory used(const BufferRef& ref, Bytes size, Bytes offset = {}) const {
    return {ref.resolve(variables_).value, offset.count, static_cast<double>(size.count)};
  }
  /// Whether a pageable copy finds `size` bytes of its source in the host's cache; notes the touch.
  FoundIn reads(BufferId id, Bytes size, bool by_host_copy = false);
  void wrote(BufferId id, Bytes size);
  /// Of `size` bytes that the operation writes from `begin` on, those that no one has touched in
  /// this pass; none where memory is not fresh.
  std::uint64_t written_from() const;  ///< of the copy under way
  Bytes touches(const BufferRef& ref, Bytes size, std::uint64_t begin = 0);

  void go_through_again(const CapturedUse& use, Work::What& what);
  Work::What captured_work(const Work::What& what, std::map<const Ticket*, TicketRef>& tickets);
  void add_nccl();

  void run(const HostCompute& op);
  void run(const HostFill& op);
  void run(const HostBarrier& op);
  void run(const HostSignal& op);
  void run(const HostWait& op);
  void run(const FrameworkCall& op);
  void run(const HostParallel& op);
  void run(const ReadFile& op);
  void run(const Spin& op);
  void run(const Gemm& op);
  void run(const Elementwise& op);
  void run(const Reduction& op);
  void run(const LibraryKernel& op);
  void run(const HostFunc& op);
  void run(const Fault& op);
  void run(const MemcpyAsync& op);
  void run(const Memcpy& op);
  void run(const MemsetAsync& op);
  void run(const Memset& op);
  void run(const EnablePeerAccess& op);
  void run(const EventRecord& op);
  void run(const StreamWaitEvent& op);
  void run(const EventSynchronize& op);
  void run(const EventQuery& op);
  void run(const EventElapsedTime& op);
  void run(const EventWaitFor& op);
  void run(const StreamSynchronize& op);
  void run(const StreamQuery& op);
  void run(const DeviceSynchronize& op);
  void run(const Malloc& op);
  void run(const Free& op);
  void run(const MallocAsync& op);
  void run(const FreeAsync& op);
  void run(const HostAlloc& op);
  void run(const HostFree& op);
  void run(const HostRegister& op);
  void run(const HostUnregister& op);
  void run(const NcclCommInit& op);
  void run(const NcclCommDestroy& op);
  void run(const NcclCommRegister& op);
  void run(const NcclCommDeregister& op);
  void run(const NcclCollective& op);
  void run(const NcclSend& op);
  void run(const NcclRecv& op);
  void run(const GraphLaunch& op);
  void run(const Repeat& op);
  void run(const Region& op);
  void run(const NcclGroup& op);
  void run(const GraphCapture& op);

  std::vector<Frame> frames_;
  std::set<std::size_t> small_memsets_;  ///< places of the capture's, from 1
  std::string failure_;
  std::uint32_t group_depth_ = 0;  ///< open nccl_groups: the outermost end issues the calls
  NcclCalls nccl_{*this};
};

}  // namespace foretrace::sim
