// The keys that NCCL's operations share with torch.distributed's, which read as those. Internal to
// scenarios/.
#pragma once

#include <string_view>

#include "scenarios/read/op_fields.h"

namespace foretrace {

/// The keys of a collective that is not in place, and what messages call those buffers.
struct BufferKeys {
  std::string_view send, recv, send_name, recv_name;
};

/// Of the communicator; 1 where the reference is broken.
std::int64_t rank_count(const OpFields& fields, const CommRef& comm);

/// Without `stream`: the legacy default stream of the communicator handle's device.
StreamRef stream_beside(OpFields& fields, const CommRef& comm);

bool has_root(CollectiveKind kind);

/// Everything but the stream and the root: buffers, type, op, size.
NcclCollective read_collective_data(OpFields& fields, CollectiveKind kind, const CommRef& comm,
                                    const BufferKeys& keys);

/// What send and recv have in common.
struct TransferData {
  BufferRef buffer;
  BytesExpr size;
  DataType type;
};
TransferData read_transfer_data(OpFields& fields);

}  // namespace foretrace
