// Registers, of which an SM has 65,536: what a block of a library's kernel takes, and so who finds
// room beside it.
#pragma once

#include <cstdint>

#include "models/cost/products/time.h"

namespace foretrace::products {

inline constexpr std::int64_t kSmRegisters = 65'536;

struct Registers {
  std::int64_t of_block = 0;      ///< 0: a kernel that wants the SM for itself
  std::int64_t room = 0;          ///< left while an SM has as many of the blocks as fit
  std::int64_t room_at_last = 0;  ///< left in the last wave
};

/// From registers_per_thread and block_x of reports/measured/products, rounded up to what the
/// hardware gives out (8 for each thread). A tile that is not there takes all that it could.
/// `tiles`: Times'.
Registers registers_of(Family family, const Plan& plan, std::int64_t tiles, double sms);

}  // namespace foretrace::products
