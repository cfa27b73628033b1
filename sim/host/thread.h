// A host thread of one process: a state machine that walks the program's blocks, pays for every
// call with time, and queues work on streams. One event per operation.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/cost/copy.h"
#include "models/cost/host.h"
#include "models/cost/kernel.h"
#include "models/cost/library.h"
#include "models/cost/stream.h"
#include "models/nccl/rules/registration.h"
#include "sim/world.h"

namespace foretrace::sim {

class HostThread final : Handler, Waiter, ContextUser {
 public:
  HostThread(Engine& engine, World& world, Recorder& recorder, const Machine& machine,
             const Program& program, const foretrace::HostThread& declared, std::uint32_t process);
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  void start() { engine_.queue().at(engine_.now(), *this, kNext); }

  // For explaining a deadlock.
  /// A wait that ran out of time; empty when the thread went well.
  const std::string& failure() const { return failure_; }
  bool finished() const { return frames_.empty(); }
  const Process& process() const { return process_; }
  const std::string& name() const { return declared_.name; }
  const Op* current() const { return current_.op; }
  /// "stream comm(0) to end", and what that stream is at.
  const std::string& waits_for() const { return waits_for_; }
  const StreamQueue* waits_for_stream() const { return waits_for_stream_; }
  const std::vector<Connection*>& waits_for_connections() const { return connections_; }

 private:
  enum Event : std::uint64_t { kNext, kReturn, kWake };
  struct Frame {
    const Block* block;
    std::size_t position;
    const Op* owner;         ///< the block's operation; null for the thread's own list
    std::uint64_t left;      ///< iterations still to run, this one included
    std::uint64_t instance;  ///< of operations in this block
    TimePoint began;         ///< regions
  };

  void fire(std::uint64_t what) override;
  void wake() override;
  void context_lost() override;
  /// An operation failed here: the thread goes no further.
  void fail(std::string what);

  void next();
  bool leave();

  /// What a call takes, and the detail of its span: its band.
  struct Priced {
    Duration time{};
    std::uint32_t detail = 0;
  };
  /// `time_of(Reading&)`: a function of models/cost/.
  template <class TimeOf>
  Priced price(const TimeOf& time_of, bool is_first = false) {
    const SpanOf which = is_first ? SpanOf::FirstCall : SpanOf::Call;
    Reading read{machine_};
    const Duration time = time_of(read);
    return {time, recorder_.banded(*current_.op, which, {}, time_of)};
  }
  Priced price(const cost::Call& call) {
    const SpanOf which = call.is_first ? SpanOf::FirstCall : SpanOf::Call;
    const auto time_of = [&](Reading& read) { return cost::call_time(read, call); };
    return {world_.costs().of(call), recorder_.banded(*current_.op, which, call, time_of)};
  }

  /// The call takes so long, then the thread goes on.
  void take(Priced call);
  /// The call takes so long at least, and returns `wake_time` after the last of `pending_wakes_`:
  /// then its time is not its own, and has no band.
  void block(Priced call, Duration wake_time, std::string waits_for);
  void block(Priced call, cost::Wait wait, std::string waits_for) {
    Reading read{machine_};
    block(call, cost::wake_time(read, wait), std::move(waits_for));
  }
  /// The same of a call that synchronizes with a device, whose pool gives back what nobody uses.
  void synchronize(Priced call, cost::Wait wait, std::uint32_t device, std::string waits_for);
  void returned();

  /// Queues `what`, which the call of so long makes the device see.
  template <class What>
  void push(StreamQueue& stream, Duration call, cost::Entry entry, What what) {
    if (capture_ != nullptr) {
      capture_->capture(stream, std::move(what));
      return;
    }
    Reading read{machine_};
    const TimePoint available = engine_.now() + call + cost::launch_latency(read, entry);
    stream.push({current_, available, 0, 1, std::move(what)});
  }
  /// A call of this kind begins. Once each: it notes what the next one depends on.
  cost::Call begin_call(Param param);
  /// The same, for work on this device.
  cost::Call begin_call(Param param, std::uint32_t device);
  bool switches_to(std::uint32_t device);
  /// Of a call whose time grows with a buffer's size.
  Priced sized_call(Param call, Param rate, const BufferRef& memory);
  struct SizedCall {
    Param call, rate;
  };
  /// The call of CUDA; of NCCL's memory NCCL's, where the machine knows what it costs.
  Priced memory_call(SizedCall by_cuda, SizedCall by_nccl, const BufferRef& memory);
  bool queue_full(StreamQueue& stream);
  void wait_for_entry(StreamQueue& stream, std::uint64_t count, std::string_view what);
  /// Memory of a device is given back, or asked for: until it is cleared.
  void freed(std::uint32_t device, Bytes size);
  Duration until_cleared(std::uint32_t device) const;
  /// A synchronization of this device: what it takes longer because of its pool.
  Duration trim_pool(std::uint32_t device);
  StreamQueue& stream(const StreamRef& ref);
  StreamQueue& stream_at(const StreamRef& ref, Variables variables);
  void end_capture();
  void wait_for_stream(StreamQueue& stream);

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
  void copy_on_host(BufferId src, BufferId dst, Bytes size);
  void pinned_copy(StreamQueue& stream, const BufferRef& src, const BufferRef& dst, Bytes size,
                   bool synchronous);
  void pageable_copy(StreamQueue& stream, const BufferRef& host, std::uint32_t device, Bytes size,
                     bool to_device, bool synchronous);
  void staged_upload(StreamQueue& stream, const BufferRef& host, std::uint32_t device, Bytes size);
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
  bool is_pinned(const BufferRef& ref) const;
  using Passes = boost::container::small_vector<cost::Pass, 4>;
  /// A kernel or a copy that is queued now goes through so much of these: what is in between
  /// decides what it finds in the level-2 cache. Memory of other devices, or of the host, is not
  /// looked at.
  Passes go_through(std::uint32_t device, std::span<const UsedMemory> memory);
  UsedMemory used(const BufferRef& ref, Bytes size, Bytes offset = {}) const {
    return {ref.resolve(variables_).value, offset.count, static_cast<double>(size.count)};
  }
  /// Whether a pageable copy finds `size` bytes of its source in the host's cache; notes the touch.
  FoundIn reads(BufferId id, Bytes size);
  void wrote(BufferId id, Bytes size);

  /// One rank's kernel for some NCCL calls, before it is queued.
  struct NcclKernel {
    CommHandle handle;
    StreamQueue* stream;
    std::shared_ptr<NcclLaunch> launch;
    nccl::Choice choice;
    Execution execution;
    Duration issued;  ///< after the call began
    std::vector<nccl::Call> together;
    std::size_t joined = 0;                                             ///< of `together`
    std::map<std::pair<std::uint32_t, std::uint32_t>, Duration> ahead;  ///< by sender and receiver
    std::vector<const NcclCall*> entries;  ///< that the launch runs, in its operations' order
  };
  static DecidedBy decided_by(const NcclKernel& kernel, const NcclCall& entry);
  void set_details(NcclKernel& kernel, bool both_ways);
  std::vector<nccl::Call> together_on(const CommHandle& handle,
                                      const std::vector<NcclCall>& calls) const;
  /// `queue_of(StreamQueue&)`: where what was called on a stream goes.
  using QueueOf = std::function<StreamQueue&(StreamQueue&)>;
  std::vector<NcclKernel> nccl_prepare(const std::vector<NcclCall>& calls, const QueueOf& queue_of,
                                       Duration& call);
  void go_through_again(const CapturedUse& use, Work::What& what);
  Duration cold_time(std::uint32_t device);
  Work::What captured_work(const Work::What& what, std::map<const Ticket*, TicketRef>& tickets);
  void nccl_call();
  Priced known_call(Param param);
  nccl::Offer offer(CommId comm, const BufferRef& ref) const;
  bool goes_directly(std::vector<BufferId>& mapped) const;
  Duration map_time(const std::vector<BufferId>& buffers, const NcclCall& call);
  void nccl_issue();
  void nccl_go_on();
  void connect_pairs();
  void connect_collectives();
  void nccl_capture();
  void nccl_launch_all();
  void nccl_launch(const NcclKernel& kernel, Duration visible);
  void nccl_launch_next();
  const CommHandle& handle_of(const NcclCall& call) const;
  Duration nccl_call_cost(Param param, std::uint32_t device);
  void wait_for_connection(Connection* connection);
  const Buffer& buffer(const BufferRef& ref) const;

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

  Engine& engine_;
  World& world_;
  Recorder& recorder_;
  const Machine& machine_;
  const Program& program_;
  const foretrace::HostThread& declared_;
  Process& process_;
  std::uint32_t lane_;

  std::vector<Frame> frames_;
  std::vector<std::int64_t> variables_;  ///< process, then loop indices
  Execution current_;
  TimePoint called_{};           ///< when the current call began
  TimePoint earliest_return_{};  ///< of a blocking call
  Duration wake_time_{};
  std::uint32_t pending_wakes_ = 0;
  std::uint32_t waiting_detail_ = 0;  ///< of the span of a blocking call
  bool passed_ = false;               ///< the operation took no time
  bool retry_ = false;                ///< the call was held up (queue full): run it again
  enum class NcclStage : std::uint8_t { None, Pairs, Collectives, Launch };
  NcclStage nccl_stage_ = NcclStage::None;  ///< of the calls of nccl_calls_: what comes next
  std::vector<bool> made_;  ///< by Param: calls of each kind, in this pass
  std::size_t slot_;                  ///< this thread's in Process::in_call_until
  std::uint32_t device_ = 0;          ///< the thread's current device
  std::string waits_for_;
  const StreamQueue* waits_for_stream_ = nullptr;
  std::vector<Connection*> connections_;  ///< that the current call waits for

  bool launches_block_;                  ///< CUDA_LAUNCH_BLOCKING=1
  GraphExec* capture_ = nullptr;         ///< what calls are captured in
  std::set<std::size_t> small_memsets_;  ///< places of the capture's, from 1
  std::string failure_;
  std::uint32_t group_depth_ = 0;  ///< open nccl_groups: the outermost end issues the calls
  std::vector<NcclCall> nccl_calls_;
  std::vector<NcclCall> nccl_launching_;      ///< where each launch waits for its kernel
  std::vector<NcclKernel> nccl_kernels_;      ///< of those calls
  std::size_t nccl_next_ = 0;                 ///< of the kernels
  Priced nccl_call_;                          ///< the call that launches them
  Duration mapping_{0};                                ///< of registered buffers, for them
  std::vector<cost::Call> nccl_host_calls_;            ///< of the launch under way
  bool has_connected_ = false;                         ///< for it
};

}  // namespace foretrace::sim
