// Which objects an operation names, by the role they play in it.
#pragma once

#include <vector>

#include "scenarios/ops.h"

namespace foretrace {

/// The events whose completion the operation waits for or asks about.
std::vector<const EventRef*> events_waited_for(const OpKind& kind);

/// The stream a kernel runs on: spin, gemm, elementwise, reduction and NCCL. Null for others.
const StreamRef* kernel_stream(const OpKind& kind);

/// The buffers such a kernel touches.
std::vector<const BufferRef*> kernel_buffers(const OpKind& kind);

/// The communicator of a NCCL operation. Null for others.
const CommRef* nccl_comm(const OpKind& kind);

}  // namespace foretrace
