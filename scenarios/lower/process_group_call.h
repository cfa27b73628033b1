// One call of a process group while it is lowered, as PyTorch 2's ProcessGroupNCCL makes it.
// Internal to scenarios/.
#pragma once

#include "scenarios/lower/lowering.h"
#include "scenarios/read/nccl_fields.h"

namespace foretrace {

/// A call of a process group: its handle, and the streams and events between which it runs.
struct GroupCall {
  CommRef comm;
  StreamRef current, internal;
  EventRef ready, done;
  bool is_async = false;
};

/// Reads `group` and `stream`.
GroupCall read_call(OpFields& fields, const Lowering& out);

/// Reads `work`, which the call gives.
void give_work(OpFields& fields, GroupCall& call);

/// Reads `async` and `work`, which belong together.
void read_async(OpFields& fields, GroupCall& call);

/// Reads the rank within the group: under NCCL's word for it, or as torch's, which is the rank in
/// the whole program.
Expr read_rank(OpFields& fields, const GroupCall& call, std::string_view nccls,
               std::string_view torchs);

/// The group's stream waits for the current one; a group that `initialises` is made before.
void begin_call(bool initialises, const GroupCall& call, Lowering& out);

/// The end is recorded; unless the call is asynchronous, the current stream waits for it.
void end_call(const GroupCall& call, Lowering& out);

/// The same for a transfer outside of a batch, which ProcessGroupNCCL::pointToPoint gives a
/// communicator and a stream of its own for each pair of ranks, unless the group was made with
/// device_id (init: eager). `peer`: of the group; then of the pair's communicator. Groups of two
/// ranks, or of more than kMostRanksInPairs, keep the group's.
GroupCall call_of_pair(OpFields& fields, const GroupCall& call, Expr& peer);
inline constexpr std::int64_t kMostRanksInPairs = 64;

}  // namespace foretrace
