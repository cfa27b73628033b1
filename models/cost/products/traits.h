// What the library may look at when it chooses among plans.
#pragma once

#include <array>
#include <cstddef>

#include "models/cost/products/time.h"

namespace foretrace::products {

/// In this order, sizes and times as logarithms to the base of 2. Of a plan: its time by
/// the heuristic's speeds, beside the fastest plan's and in us; memory's time beside the SMs'; how
/// many waves its tiles fill, how full they are, how many that makes; a tile's rows, columns, rows
/// for each column, whether two warp groups share it, how many an SM has (by 8), whether the grid
/// is padded; parts of k, whether blocks add them, how deep one is; how full tiles are down and
/// across, how many there are, whether odd. Of its shape: m, n, k, batch; whether a and b are
/// transposed, c is read, c is wider, it is bfloat16; how a, b and c are aligned.
constexpr std::size_t kTraits = 33;
using Traits = std::array<float, kTraits>;
/// `times` are the plan's, `fastest` the shortest of all plans for this shape, in seconds.
Traits traits_of(const Shape& shape, const Plan& plan, const Times& times, double fastest,
                 double sms);

}  // namespace foretrace::products
