// Who is ordered after whom in a program, by CUDA's and NCCL's rules alone: no times, no machine.
//
// Covered: host threads with their signals and barriers; streams in order; events (the latest
// record at the time of the call; never recorded is complete); the legacy default stream against
// the blocking and per-thread default streams of its device (a wait alone is no work of a stream
// there), a per-thread default stream for each host thread; synchronization of events, streams and
// devices; copies that hold the host; free; host functions with their signals; a graph's launch as
// one entry of its stream, and launches of one graph in their order; one communicator's launches on
// one device in their order; a collective's kernels end only after all ranks began, a send with its
// receive likewise; hosts that wait for each other where a cold NCCL call connects, and for kernels
// where launches block.
//
// Not covered: the order inside a graph; a limited number of SMs or hardware queues; what a failed
// or timed-out operation leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/check/order_clock.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// Bytes of a send that may have left before anybody receives: up to 32 channels of 4 MiB.
inline constexpr std::uint64_t kMostOnTheWay = std::uint64_t{128} << 20;

/// Host threads run at their own pace, so who issued first is not always known.
enum class OrderMode : std::uint8_t {
  Guaranteed,  ///< only what holds however fast each thread is, and what CUDA documents
  Likely  ///< also what one fair run had, with a full launch queue holding the host: nothing is
          ///< called unordered that most likely is not
};

struct OrderOptions {
  OrderMode mode = OrderMode::Guaranteed;
  std::uint64_t most_operations = 20'000;  ///< executed ones, of all host threads together
  // Of the likely order:
  std::uint32_t seed = 0;               ///< 0: threads take turns; else they come in another order
  bool buffers_hold_sends = false;      ///< who sends goes on, as far as NCCL's buffers may hold it
  bool connections_serve_both = false;  ///< as of NcclConnections
};

/// What one host thread does itself, or what it queues on one stream: in order.
struct OrderLane {
  std::uint32_t process{};
  std::uint32_t thread{};               ///< index into Program::threads
  std::optional<std::uint32_t> stream;  ///< index into Program::streams; none: the host's own
  std::vector<std::uint32_t> nodes;
};

struct ExecutedOp {
  const Op* op{};
  std::uint64_t instance{};
};

/// A host thread's call, or an entry of a stream. Records and waits are entries too.
struct OrderNode {
  ExecutedOp call;  ///< the operation whose host call made it; a group's, a graph launch
  std::uint32_t process{};
  std::uint32_t lane{};
  std::uint32_t position{};  ///< in its lane, from 1 on
  std::uint32_t issued{};    ///< an entry's: the position of the host's call in the host's lane
  std::uint32_t first_work{}, work_count{};  ///< into HappensBefore::work; of stream entries only
  bool ended = false;
};

/// Begin of `to` is after end of `from`.
struct OrderEdge {
  std::uint32_t from{}, to{};  ///< indices into nodes
};

/// A region of a host thread that has ended, and never after a wait for the work that it issues
/// last.
struct UnwaitedRegion {
  const Op* region{};
  std::uint32_t node{};         ///< the first entry that it issues and that nothing there waits for
  bool is_behind_wait = false;  ///< it has waited for what it issued before that
};

struct HappensBefore {
  std::vector<OrderNode> nodes;
  std::vector<OrderLane> lanes;
  std::vector<ExecutedOp> work;          ///< what entries do: a group's or a graph's operations
  std::vector<OrderEdge> edges;          ///< direct ones; those that others imply are left out
  std::vector<std::uint32_t> sequence;   ///< the nodes that ended, each after what it follows
  std::vector<OrderClock> before;        ///< by node: what has ended when it begins
  std::vector<UnwaitedRegion> unwaited;  ///< of a run that is finished
  /// Of a run that is not finished, by node: which rank an NCCL kernel or a host's NCCL call waits
  /// for, and where that rank is. "rank 1 calls it in line 30, behind line 29 in its stream"
  std::map<std::uint32_t, std::string> missing;
  std::uint64_t clock_entries = 0;  ///< that all these clocks took
  bool is_complete = true;          ///< false: cut at the limit
  bool is_finished = false;         ///< everybody came to the end: no deadlock

  bool is_device(std::uint32_t node) const { return lanes[nodes[node].lane].stream.has_value(); }
  /// `a` has ended when `b` begins.
  bool is_ordered(std::uint32_t a, std::uint32_t b) const {
    const OrderNode& first = nodes[a];
    return before[b][first.lane] >= first.position;
  }
};

/// `program` was read without an error; the result points into it.
HappensBefore happens_before(const Program& program, const OrderOptions& options = {});

/// The variables in force where `executed` ran.
std::vector<std::int64_t> variables_of(const std::vector<OpInfo>& index, const ExecutedOp& executed,
                                       std::uint32_t process);

}  // namespace foretrace
