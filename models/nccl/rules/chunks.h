// In what pieces a channel moves its share of a collective (nccl src/enqueue.cc, calcCollChunking).
#pragma once

#include "models/nccl/rules/plan.h"

namespace foretrace {

/// Ranks over which nBytes is the sum: all of them where each has a part, else one.
std::uint64_t ranks_sharing(NcclFunction function, std::uint32_t ranks);

/// `bytes` as in NcclShare.
NcclShare nccl_share(const NcclTuning& tuning, NcclFunction function, const NcclPlan& plan,
                     std::uint64_t bytes);

}  // namespace foretrace
