#include "scenarios/program/product_type.h"

#include <array>

namespace foretrace {

bool is_product_type(DataType type) { return type != DataType::Int32 && type != DataType::Int64; }

bool is_narrow(DataType type) {
  using enum DataType;
  return type == Float8E4M3 || type == Float8E5M2 || type == Float4E2M1;
}

DataType result_of(DataType type) {
  if (is_narrow(type)) return DataType::BFloat16;
  return type == DataType::Int8 ? DataType::Int32 : type;
}

bool makes(DataType type, DataType result) {
  using enum DataType;
  if (result == result_of(type)) return true;
  return is_narrow(type) && (result == Float16 || result == Float32);
}

bool takes(DataType type, Scales scales) {
  switch (scales) {
    case Scales::Tensor:
      return type != DataType::Float4E2M1;
    case Scales::Row:
    case Scales::Square:
      return is_narrow(type) && type != DataType::Float4E2M1;
    case Scales::Mx:
      return is_narrow(type);
    case Scales::Nv:
      return type == DataType::Float4E2M1;
    case Scales::Packed:
      return type == DataType::BFloat16;
  }
  return false;
}

std::int64_t bytes_of_32(DataType type, Scales scales) {
  const bool is_half_a_byte = type == DataType::Float4E2M1 || scales == Scales::Packed;
  const std::int64_t numbers =
      is_half_a_byte ? kCountedNumbers / 2
                     : kCountedNumbers * static_cast<std::int64_t>(size_of(type).count);
  // A block of 32 has one byte of scale, one of 16 too; 128 packed ones 2.5 bytes.
  const bool has_one = scales == Scales::Mx || scales == Scales::Packed;
  return numbers + (has_one ? 1 : scales == Scales::Nv ? 2 : 0);
}

std::int64_t bytes_of(std::int64_t numbers, DataType type, Scales scales) {
  return numbers * bytes_of_32(type, scales) / kCountedNumbers;
}

double bytes_each(DataType type, Scales scales) {
  return static_cast<double>(bytes_of_32(type, scales)) / static_cast<double>(kCountedNumbers);
}

std::string_view scales_word(Scales scales) {
  constexpr std::array<std::string_view, 6> kWords{"tensor", "row", "block", "mx", "nv", "packed"};
  return kWords[static_cast<std::size_t>(scales)];
}

}  // namespace foretrace
