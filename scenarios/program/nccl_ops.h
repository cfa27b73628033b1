// NCCL's operations.
#pragma once

#include <cstdint>

#include "scenarios/program/ids.h"
#include "scenarios/program/work_ops.h"

namespace foretrace {

// clang-format off: one line per operation reads as a table

// ---- NCCL ------------------------------------------------------------------------------------

enum class CollectiveKind : std::uint8_t {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Gather,
  Scatter
};

/// ncclCommInitRank for this rank; returns when all ranks of the communicator have called it.
/// `if_needed`: not when this pass has done so before, as torch.distributed's lazy initialisation.
struct NcclCommInit {
  CommRef comm;
  bool if_needed = false;
};
struct NcclCommDestroy {
  CommRef comm;
};
/// ncclCommRegister of the whole buffer for this rank: from here on its peers may read and write it
/// directly, if NCCL's kernels can and every rank has registered its own. A local call; the peers
/// map the memory when a NCCL operation first uses it. A buffer may be registered several times.
struct NcclCommRegister {
  CommRef comm;
  BufferRef buffer;
};
/// ncclCommDeregister of the latest registration of that buffer by this rank. No operation may be
/// using it.
struct NcclCommDeregister {
  CommRef comm;
  BufferRef buffer;
};
/// Returns once queued, the first use of an algorithm excepted: connections are made then. The
/// kernel begins when the stream reaches it and ends when all ranks have taken part.
struct NcclCollective {
  CollectiveKind kind;
  CommRef comm;
  StreamRef stream;
  BufferRef send, recv;
  BytesExpr
      size;  ///< NCCL's count times the element size: AllGather, Scatter: what one rank
             ///< sends or gets; ReduceScatter, Gather, AllToAll: what one rank gets (per peer).
  DataType type;
  RedOp op = RedOp::Sum;
  Expr root;  ///< rank
};
/// The first transfer with a peer connects both sides: the host returns when the peer has called
/// too. Later ones return once queued.
struct NcclSend {
  CommRef comm;
  StreamRef stream;
  BufferRef buffer;
  BytesExpr size;
  DataType type;
  Expr peer;
};
struct NcclRecv {
  CommRef comm;
  StreamRef stream;
  BufferRef buffer;
  BytesExpr size;
  DataType type;
  Expr peer;
};

// clang-format on

}  // namespace foretrace
