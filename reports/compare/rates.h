// What a time means for the hardware: the arithmetic or the bandwidth that an operation achieved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// What one execution does, in `unit`s: a product's floating-point operations (2 m n k), a copy's
/// or fill's bytes, and the bytes that a collective has each link carry (bus bandwidth, as
/// nccl-tests has it: what all ranks together hold, times 2 (n - 1) / n for an all-reduce, (n - 1)
/// / n where every rank has a part, else 1).
struct AmountOfWork {
  double amount{};
  enum class Unit : std::uint8_t { Flops, Bytes, BusBytes } unit = Unit::Bytes;
};

/// Of `op` in `instance`, or of the operation that the region `op` is of. None where nothing is
/// known: no size, or an operation of another kind.
std::optional<AmountOfWork> amount_of(const OpRow& op, std::uint64_t instance);

/// Bytes of that execution; 0 when it has none or they are not known.
std::uint64_t size_of(const OpRow& op, std::uint64_t instance);

/// "612.3 TFLOP/s", "55.31 GB/s"; empty for a time of 0. 1 GB is 1e9 bytes.
std::string format_rate(const AmountOfWork& work, double ns);

}  // namespace foretrace
