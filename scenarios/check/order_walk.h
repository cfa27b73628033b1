// Walks all host threads of all processes through their operations, in turns of one call each, and
// fills an OrderGraph with what they do and queue.
#pragma once

#include <concepts>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/check/order_graph.h"
#include "scenarios/program/nccl_connections.h"

namespace foretrace {

template <class Kind, class... Kinds>
concept OneOf = (std::same_as<Kind, Kinds> || ...);

class OrderWalk {
 public:
  OrderWalk(const Program& program, const OrderOptions& options, const OrderFacts& known);

  /// Until everybody is at the end, nobody can go on, or the limit is reached.
  void run();
  const OrderFacts& facts() const { return graph_.facts(); }
  HappensBefore take_result() &&;

 private:
  struct Frame {
    const Block* block;
    std::size_t position;
    const Op* owner;         ///< the block's operation; null for the thread's own list
    std::uint64_t left;      ///< iterations still to run, this one included
    std::uint64_t instance;  ///< of operations in this block
  };
  struct NcclCall {
    ExecutedOp executed;
    std::vector<std::int64_t> variables;
    std::size_t issued = 0;  ///< in a capture: calls of one group are issued together
  };
  struct CommState;
  /// One rank's kernel of a call or a group.
  struct NcclLaunch {
    CommState* comm;
    std::uint32_t rank;
    std::uint32_t stream;
    OrderEntry entry;
  };
  /// What NCCL does next with the calls under way: it connects pairs of ranks, then all of a
  /// communicator, then it launches.
  enum class NcclStage : std::uint8_t { None, Pairs, Collectives, Launch };
  /// What a graph does whenever it is launched.
  struct Captured {
    std::vector<ExecutedOp> work;
    std::vector<std::uint32_t> takes, gives;
    std::vector<NcclCall> nccl;
    std::vector<std::uint32_t> launches;
  };
  /// Everybody waits for the last: a barrier, the making of a communicator.
  struct Meeting {
    std::size_t missing{};
    std::uint64_t generation = 0;
    OrderClock arriving, met;
  };
  /// What a region has issued, in all its executions so far.
  struct RegionWork {
    /// Since the last wait for any of it, the first of each lane, and of each call and lane.
    std::map<std::uint32_t, std::uint32_t> behind;
    std::map<std::pair<const Op*, std::uint32_t>, std::uint32_t> calls_behind;
    bool has_waited = false;  ///< for any of it, in any execution
    /// Calls whose work a later execution has waited for: that counts what this one leaves behind.
    std::set<const Op*> waited_later;
    std::uint32_t first = OrderGraph::kNone;
    std::uint32_t begin{};  ///< the first that this execution can have issued
  };
  struct Thread {
    const HostThread* declared{};
    std::uint32_t process{};
    std::uint32_t lane{};
    std::vector<Frame> frames;
    std::vector<std::int64_t> variables;
    OrderClock clock;                  ///< what has ended before the next call
    std::vector<std::uint32_t> ended;  ///< whose ends the last call waited for
    ExecutedOp current;
    std::uint32_t call{};
    bool is_calling = false;
    // What the call waits for.
    std::vector<std::uint32_t> entries;
    std::optional<std::uint32_t> semaphore;
    Meeting* meeting = nullptr;
    std::uint64_t generation = 0;
    std::vector<NcclCall> nccl;  ///< of the open group or capture, or the one call
    int group_depth = 0;
    NcclStage nccl_stage = NcclStage::None;
    std::size_t connected = 0;                                       ///< of `nccl`
    std::vector<std::pair<const CommState*, std::uint32_t>> setups;  ///< of pairs; waited for
    std::vector<const CommState*> comms;                             ///< whose ranks it waits for
    std::deque<NcclLaunch> launches;                                 ///< that are to come
    std::optional<Captured> capture;
    std::vector<const Op*> regions;  ///< around the call, outermost first
    std::map<const Op*, RegionWork> region_work;
  };
  struct PairQueue {
    std::deque<std::shared_ptr<OrderTransfer>> sends, recvs;  ///< without their partners
  };
  struct CommState {
    CommState(const std::vector<RankPlace>& members, bool serve_both)
        : next(members.size()),
          launches(members.size()),
          has_arrived(members.size()),
          has_connected(members.size()),
          connections{static_cast<std::uint32_t>(members.size()), serve_both} {
      for (const RankPlace& place : members) {
        ranks.emplace(place, static_cast<std::uint32_t>(ranks.size()));
      }
    }
    std::map<RankPlace, std::uint32_t> ranks;
    std::vector<std::uint64_t> next;  ///< by rank: number of its next collective
    std::vector<std::shared_ptr<OrderTransfer>> collectives;
    std::map<std::pair<std::uint32_t, std::uint32_t>, PairQueue> pairs;
    std::vector<std::vector<std::uint32_t>> launches;  ///< by rank
    Meeting made;
    std::vector<bool> has_arrived;    ///< by rank
    std::vector<bool> has_connected;  ///< by rank, for collectives
    std::size_t connected = 0;        ///< of them
    NcclConnections connections;      ///< of pairs
  };

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
