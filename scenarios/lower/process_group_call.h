// The keys of a call of a process group.
// Internal to scenarios/.
#pragma once

#include "scenarios/lower/syntax.h"
#include "scenarios/read/nccl_fields.h"

namespace foretrace {

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

/// The call of a transfer outside of a batch, which ProcessGroupNCCL::pointToPoint gives a
/// communicator and a stream of its own for each pair of ranks, unless the group was made with
/// device_id (init: eager). `peer`: of the group; then of the pair's communicator. Groups of two
/// ranks, or of more than kMostRanksInPairs, keep the group's.
GroupCall call_of_pair(OpFields& fields, const GroupCall& call, Expr& peer);
inline constexpr std::int64_t kMostRanksInPairs = 64;

}  // namespace foretrace
