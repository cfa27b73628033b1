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

/// The group's stream waits for the current one; a lazy group is made before.
void begin_call(OpFields& fields, const GroupCall& call, Lowering& out);

/// The end is recorded; unless the call is asynchronous, the current stream waits for it.
void end_call(const GroupCall& call, Lowering& out);

}  // namespace foretrace
