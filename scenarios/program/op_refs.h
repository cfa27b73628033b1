// Which objects an operation names, by the role they play in it.
#pragma once

#include <vector>

#include "scenarios/program/ops.h"

namespace foretrace {

/// The events whose completion the operation waits for or asks about.
std::vector<const EventRef*> events_waited_for(const OpKind& kind);

/// The stream a kernel runs on: spin, gemm, elementwise, reduction and NCCL. Null for others.
const StreamRef* kernel_stream(const OpKind& kind);

/// The buffers such a kernel touches.
std::vector<const BufferRef*> kernel_buffers(const OpKind& kind);

/// A buffer whose contents an operation reads or writes; one entry per way, so what happens in
/// place is listed twice.
struct BufferAccess {
  const BufferRef* buffer;
  bool writes;
};

/// What the operation itself touches: nothing for blocks, and nothing for operations that only
/// make or free memory. A root's part is listed for every rank of a rooted collective.
std::vector<BufferAccess> buffer_accesses(const OpKind& kind);

/// The communicator of a NCCL operation. Null for others.
const CommRef* nccl_comm(const OpKind& kind);

}  // namespace foretrace
