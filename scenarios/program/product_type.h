// Element types of products: what is multiplied, in how many bits, into what.
#pragma once

#include <cstdint>
#include <string_view>

#include "scenarios/program/ops.h"

namespace foretrace {

/// Whether gemm multiplies it.
bool is_product_type(DataType type);
/// Of less than 16 bits, and no integer: has scales, and a result of another type.
bool is_narrow(DataType type);
/// What a product of these operands is, unless it says otherwise: narrow ones make bfloat16, int8
/// int32.
DataType result_of(DataType type);
/// Whether its result may be that.
bool makes(DataType type, DataType result);
/// Whether numbers of this type may have such scales.
bool takes(DataType type, Scales scales);

/// A block of MX, two of NV: what has whole bytes in every type.
constexpr std::int64_t kCountedNumbers = 32;
/// Bytes of so many numbers of an operand, the scales of its blocks with them.
std::int64_t bytes_of_32(DataType type, Scales scales);
/// Bytes of so many numbers.
std::int64_t bytes_of(std::int64_t numbers, DataType type, Scales scales = Scales::Tensor);
/// Bytes of one, on average.
double bytes_each(DataType type, Scales scales = Scales::Tensor);

/// "tensor", "row", "block", "mx", "nv", "packed"
std::string_view scales_word(Scales scales);

}  // namespace foretrace
