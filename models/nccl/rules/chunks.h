// In what pieces a channel moves its share of a collective (nccl src/enqueue.cc, calcCollChunking).
#pragma once

#include "models/nccl/rules/plan.h"

namespace foretrace::nccl {

/// Ranks over which nBytes is the sum: all of them where each has a part, else one.
std::uint64_t ranks_sharing(Function function, std::uint32_t ranks);

/// `bytes` as in ChannelShare.
ChannelShare share_of(const Tuning& tuning, Function function, const Plan& plan,
                      std::uint64_t bytes);

}  // namespace foretrace::nccl
