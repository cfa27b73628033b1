// What can be asked about an operation without running it, answered in one place. A new operation
// does not compile until every question is answered for it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scenarios/program/ops.h"

namespace foretrace {

// ---- of a kind of operation
// -----------------------------------------------------------------------

/// What it puts on a stream.
enum class StreamWork : std::uint8_t {
  None,
  Kernel,
  Nccl,
  Copy,    ///< between host buffers, the host copies
  Fill,    ///< a memset
  Record,  ///< of an event
  Wait,    ///< for an event
  HostFunction,
  Graph,
  Marker  ///< takes its place in the stream's order and no time
};

/// Whether its host thread waits in it, and for what. Calls that only have to be made do not wait.
enum class HostWaits : std::uint8_t {
  No,
  ForStream,  ///< also where it depends on the kind of memory (memcpy, memset)
  ForDevice,
  ForEvent,
  ForSignal,
  ForThreads,  ///< at a barrier
  ForRanks     ///< until all ranks have called it
};

/// Who acts when the host thread comes to it.
enum class HostActs : std::uint8_t {
  Itself,  ///< computes, or touches memory
  Meets,   ///< other host threads: barriers and signals
  Cuda,    ///< a call into CUDA
  Nccl,    ///< a call into NCCL
  Inside   ///< the operations of its block do
};

struct KindFacts {
  HostActs acts = HostActs::Cuda;
  StreamWork work = StreamWork::None;
  HostWaits waits = HostWaits::No;
  /// It tells of an earlier kernel's error. Launches and other asynchronous calls do not, as seen
  /// on H200s.
  bool reports_errors = false;
  bool can_be_captured = false;  ///< may stand in a graph_capture
  bool can_be_grouped = false;   ///< may stand in a nccl_group
};

/// Of the kind that kind_name() calls so; null for none.
const KindFacts* kind_facts(std::string_view name);

// ---- of one operation
// -----------------------------------------------------------------------------

/// A buffer whose contents an operation reads or writes; one entry per way, so what happens in
/// place is listed twice.
struct BufferAccess {
  const BufferRef* buffer{};
  bool writes{};
  const BytesExpr* offset = nullptr;  ///< null: 0
  const BytesExpr* size = nullptr;    ///< null: `bytes`, or else to the end
  std::optional<Bytes> bytes = std::nullopt;
};

/// The pointers are into the operation, and null or empty where it has no such thing.
struct OpFacts : KindFacts {
  const StreamRef* stream = nullptr;  ///< that it names: for its work, or to wait for it
  std::vector<const EventRef*> events_waited_for;  ///< waits for their completion, or asks about it
  const EventRef* event_recorded = nullptr;
  const SignalRef* signal_taken = nullptr;
  const SignalRef* signal_given = nullptr;
  const BarrierId* barrier = nullptr;
  /// What the operation itself touches: nothing for blocks, and nothing for operations that only
  /// make or free memory. A root's part is listed for every rank of a rooted collective.
  std::vector<BufferAccess> accesses;
  const BufferRef* memory = nullptr;  ///< that it allocates, frees, pins or unpins
  const CommRef* comm = nullptr;
  const Expr* peer = nullptr;  ///< rank that it sends to or receives from
  const GraphRef* graph = nullptr;
  const BytesExpr* size = nullptr;
  std::optional<DataType> type;
  const Block* body = nullptr;
  std::uint64_t times = 1;  ///< that the body runs

  /// The stream of a kernel, NCCL's too; null for all others.
  const StreamRef* kernel_stream() const {
    return work == StreamWork::Kernel || work == StreamWork::Nccl ? stream : nullptr;
  }
};

OpFacts op_facts(const OpKind& kind);

/// What only the root of a collective does: other ranks do not touch that buffer.
bool is_of_the_root_alone(const OpKind& kind, const BufferAccess& access);

/// malloc, malloc_async, host_alloc.
bool allocates(const OpKind& kind);
/// free, free_async, host_free.
bool frees(const OpKind& kind);

/// Whose memory it needs. A root's part is not listed: other ranks do not need it.
std::vector<const BufferRef*> buffers_used(const OpKind& kind);

/// Its communicator, for those who ask nothing else.
const CommRef* nccl_comm(const OpKind& kind);

}  // namespace foretrace
