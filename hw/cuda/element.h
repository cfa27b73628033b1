// Element types and reductions as kernels know them: a .cu file is C++17 and cannot include the
// scenario's own.
#pragma once

#include <cstdint>

namespace foretrace::hw {

/// In the order of foretrace::DataType.
enum class Element : std::uint8_t {
  Float16, BFloat16, Float32, Float64, Int8, Int32, Int64, Float8E4M3, Float8E5M2  // operands only
};
/// In the order of foretrace::RedOp.
enum class Combine : std::uint8_t { Sum, Prod, Min, Max, Avg };

}  // namespace foretrace::hw
