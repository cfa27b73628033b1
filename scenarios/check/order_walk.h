// Walks all host threads of all processes through their operations, in turns of one call each, and
// fills an OrderGraph with what they do and queue.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <vector>

#include "scenarios/check/order_graph.h"
#include "scenarios/check/order_walk_state.h"

namespace foretrace {

template <class Kind, class... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

class OrderWalk : OrderWalkState {
 public:
  OrderWalk(const Program& program, const OrderOptions& options, const OrderFacts& known);

  /// Until everybody is at the end, nobody can go on, or the limit is reached.
  void run();
  const OrderFacts& facts() const { return graph_.facts(); }
  HappensBefore take_result() &&;

 private:
  void run_mixed(std::uint32_t seed);
  bool step(Thread& thread);
  bool next_operation(Thread& thread);
  void enter(Thread& thread, const Op& op, std::uint64_t instance);
  bool leave(Thread& thread);
  bool can_return(const Thread& thread) const;
  void go_on(Thread& thread);
  void return_from(Thread& thread);

  bool has_ended_for(const Thread& thread, std::uint32_t node) const;
  void begin_region(Thread& thread, const Op& region);
  void note_in_regions(Thread& thread, std::uint32_t entry);
  void note_wait_in_regions(Thread& thread);
  std::vector<UnwaitedRegion> unwaited_regions() const;

  std::uint32_t queue(Thread& thread, std::uint32_t stream, OrderEntry entry);
  std::uint32_t queue(Thread& thread, const StreamRef& stream, OrderEntry entry);
  void wait_for_room(Thread& thread, std::uint32_t added);
  void wait_for(Thread& thread, const std::vector<std::uint32_t>& entries);
  void wait_for_stream(Thread& thread, std::uint32_t stream, bool of_all_threads = false);
  void wait_for_device(Thread& thread, std::uint32_t device);
  std::vector<std::uint32_t> latest_record(const Thread& thread, const EventRef& event) const;
  void copy(Thread& thread, std::uint32_t stream, const BufferRef& src, const BufferRef& dst,
            Bytes size, bool is_synchronous);
  void arrive(Thread& thread, Meeting& meeting, std::size_t parties);
  const Buffer& buffer(const Thread& thread, const BufferRef& ref) const;
  std::uint32_t semaphore_of(const Thread& thread, const SignalRef& signal) const;
  std::uint32_t event_of(const Thread& thread, const EventRef& event) const;

  void nccl_call(Thread& thread);
  void nccl_issue(Thread& thread);
  bool nccl_goes_on(Thread& thread);
  void connect_pairs(Thread& thread);
  void connect_collectives(Thread& thread);
  void make_launches(Thread& thread);
  void launch_next(Thread& thread);
  static void note_connections(const Thread& thread, std::map<std::uint32_t, std::string>& missing);
  bool holds(Bytes sent) const;
  OrderPart join_transfer(const NcclCall& call, CommState& comm, std::uint32_t rank);
  OrderPart join_collective(const NcclCall& call, CommState& comm, std::uint32_t rank);
  const CommHandle& handle_of(const NcclCall& call) const;
  std::uint32_t rank_of(const CommHandle& handle, std::uint32_t process) const;
  std::optional<std::uint32_t> last_before(const Thread& thread,
                                           const std::vector<std::uint32_t>& launches) const;

  void run(Thread& thread, const HostBarrier& op);
  void run(Thread& thread, const HostSignal& op);
  void run(Thread& thread, const HostWait& op);
  void run(Thread& thread, const HostFunc& op);
  void run(Thread& thread, const MemcpyAsync& op);
  void run(Thread& thread, const Memcpy& op);
  void run(Thread& thread, const MemsetAsync& op);
  void run(Thread& thread, const Memset& op);
  void run(Thread& thread, const EventRecord& op);
  void run(Thread& thread, const StreamWaitEvent& op);
  void run(Thread& thread, const EventSynchronize& op);
  void run(Thread& thread, const EventWaitFor& op);
  void run(Thread& thread, const StreamSynchronize& op);
  void run(Thread& thread, const DeviceSynchronize& op);
  void run(Thread& thread, const Free& op);
  void run(Thread& thread, const HostUnregister& op);
  void run(Thread& thread, const MallocAsync& op);
  void run(Thread& thread, const FreeAsync& op);
  void run(Thread& thread, const NcclCommInit& op);
  void run(Thread& thread, const NcclCommDestroy& op);
  void run(Thread& thread, const GraphLaunch& op);
  template <OneOf<Spin, Gemm, Elementwise, Reduction, LibraryKernel, Fault> Kernel>
  void run(Thread& thread, const Kernel& op) {
    const std::uint32_t entry = queue(thread, op.stream, {});
    if (launches_block_ && entry != OrderGraph::kNone) wait_for(thread, {entry});
  }
  template <OneOf<NcclCollective, NcclSend, NcclRecv> Call>
  void run(Thread& thread, const Call&) {
    nccl_call(thread);
  }
  /// These take the host's time and order nothing.
  template <OneOf<HostCompute, HostFill, HostParallel, ReadFile, FrameworkCall, EnablePeerAccess,
                  EventQuery, EventElapsedTime, StreamQuery, Malloc, HostAlloc, HostFree,
                  HostRegister, NcclCommRegister, NcclCommDeregister>
                Nothing>
  void run(Thread&, const Nothing&) {}
  /// next_operation enters and leaves blocks; a group's end is a call.
  template <OneOf<Repeat, Region, NcclGroup, GraphCapture> Blocks>
  void run(Thread&, const Blocks&) {}

  const Program& program_;
  const OrderOptions& options_;
  const OrderFacts& known_;  ///< of an earlier walk
  bool launches_block_;      ///< CUDA_LAUNCH_BLOCKING=1
  OrderGraph graph_;
  std::vector<Thread> threads_;
  std::vector<Meeting> barriers_;
  std::vector<CommState> comms_;
  /// By process * events + event: each lane's records.
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>> records_;
  std::map<std::uint32_t, Captured> graphs_;  ///< by process * graphs + graph
  std::map<std::uint32_t, std::vector<std::uint32_t>> sure_entries_;  ///< by lane
  std::uint64_t executed_ = 0;
  bool is_cut_ = false;
};

}  // namespace foretrace
