// Where a walk is: what it knows of host threads, communicators, graphs and regions.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct OrderWalkState {
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
};

}  // namespace foretrace
