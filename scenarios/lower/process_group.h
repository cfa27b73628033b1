// Process groups in a Program, and their calls as PyTorch 2's ProcessGroupNCCL makes them. Internal
// to scenarios/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/lower/lowering.h"

namespace foretrace {

/// One of `process_groups:`, by the first id of its communicator's handles.
struct ProcessGroup {
  std::uint32_t first_stream{};      ///< the internal streams, one for each of `devices`
  std::uint32_t devices = 1;         ///< of each process that are ranks
  std::vector<std::uint32_t> ranks;  ///< ascending, as the whole program numbers them
  bool initialises = false;          ///< the first call makes the communicator, in the run
  bool is_split = false;             ///< each process has its own; `ranks` are of the first one
  bool is_lazy = false;              ///< without device_id: pairs of ranks have their own
  /// Of those: communicators by their two ranks, and the first handle and stream of a place in the
  /// program for each distance to the other rank.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> pairs;
  std::optional<std::uint32_t> first_pair_handle;
  std::uint32_t first_pair_stream{};
  std::map<std::string, std::uint32_t, std::less<>> events;  ///< each host thread's first one
  std::optional<std::uint32_t> first_barrier_buffer;         ///< made when a barrier needs it
};

/// The group's streams, and for each of its parts (one, unless it is split) a communicator with a
/// handle for each device. Lazy is torch's default: the first call makes the communicator.
struct AddedGroup {
  CommId first_handle;
  ProcessGroup group;
};
AddedGroup add_process_group(Program& program, const std::string& name,
                             const std::vector<std::vector<std::uint32_t>>& parts, bool is_split,
                             bool is_lazy);

/// A call of a process group: its handle, and the streams and events between which it runs.
struct GroupCall {
  CommRef comm;
  StreamRef current, internal;
  EventRef ready, done;
  bool is_async = false;
};

/// One of the thread that gives no work, on the group's stream of `device`, behind `current`.
/// `name`: the communicator's.
GroupCall call_of_group(Program& program, ProcessGroup& group, std::string_view name,
                        std::string_view thread, CommRef comm, Expr device, StreamRef current);

/// The group's stream waits for the current one; a group that `initialises` is made before.
void begin_call(bool initialises, const GroupCall& call, Lowering& out);

/// The end is recorded; unless the call is asynchronous, the current stream waits for it.
void end_call(const GroupCall& call, Lowering& out);

/// tensor.item(), print(t): four bytes of `src` to pageable memory of the thread, then wait for the
/// stream.
void add_read_scalar(Program& program, const StreamRef& stream, const BufferRef& src,
                     Lowering& out);

}  // namespace foretrace
