// Registered buffers: whether a rank's kernels may write straight into its peer's buffer, instead
// of into a buffer of NCCL's that the peer copies from (nccl src/register, src/transport/p2p.cc, on
// one node with NVLink). NCCL asks it of every call and rank; all ranks must answer alike.
#pragma once

#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// What a rank's call brings along of one buffer.
struct Offer {
  bool can_be_mapped = false;  ///< by other processes: see can_map
  bool is_registered = false;  ///< by ncclCommRegister
};

/// Memory of ncclMemAlloc, unless NCCL_CUMEM_ENABLE=0 made that a cudaMalloc. cudaMalloc's memory
/// with NCCL_LEGACY_CUDA_REGISTER=1, by an older kind of handle that one process cannot open
/// itself.
bool can_map(const Settings& settings, bool by_nccl, bool one_process);

/// Of a collective that is not made of sends and receives: peers write into what it receives.
/// `captured`: by a CUDA graph, which registers whatever can be mapped (NCCL_GRAPH_REGISTER,
/// default 1; NCCL_LOCAL_REGISTER, default 1, is for ncclCommRegister).
bool may_write_directly(const Settings& settings, CollectiveKind kind, bool in_place, Offer send,
                        Offer recv, bool captured);

/// Of one side of a transfer between two ranks.
bool may_transfer_directly(const Settings& settings, Offer buffer, bool captured);

}  // namespace foretrace::nccl
