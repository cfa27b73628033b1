// What the library may look at when it chooses among plans.
#pragma once

#include <array>
#include <cstddef>

#include "models/cost/products/time.h"

namespace foretrace::products {

/// Of a plan, logarithms to the base of 2:
///   its time by library_speeds(), beside the fastest plan's, and in us; what the memory takes
///   beside the SMs the waves it fills; how far the last one; how many they are tile: rows,
///   columns, rows for each column; together for two warp groups; how many an SM has; whether the
///   grid is padded; parts of k, whether blocks add them, how deep one is how far the last tile of
///   a column and of a row is filled, how many there are, whether odd
/// and of its shape
///   m, n, k, batch; a and b transposed, c read, c in float32, bfloat16; how a, b and c are aligned
constexpr std::size_t kTraits = 33;
using Traits = std::array<float, kTraits>;
/// `times` are the plan's, `fastest` the shortest of all plans for this shape, in seconds.
Traits traits_of(const Shape& shape, const Plan& plan, const Times& times, double fastest,
                 double sms);

/// The speeds that times for the library's choice are taken from: one H200's, whatever the machine,
/// since the library looks at shapes and SMs and not at clocks (H100s and H200s choose alike).
Speeds library_speeds(Family family, double sms);

}  // namespace foretrace::products
