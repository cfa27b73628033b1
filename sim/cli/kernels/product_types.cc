#include "sim/cli/kernels/product_types.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using products::Arithmetic;

constexpr std::array kProductTypes{
    ProductType{"float32", DataType::Float32, Arithmetic::Float32},
    ProductType{"tf32", DataType::Float32, Arithmetic::Tf32},
    ProductType{"float16", DataType::Float16, Arithmetic::Half},
    ProductType{"bfloat16", DataType::BFloat16, Arithmetic::Half},
    ProductType{"float64", DataType::Float64, Arithmetic::Float64},
    ProductType{"float8", DataType::Float8E4M3, Arithmetic::Float8},
    ProductType{"float8_e4m3", DataType::Float8E4M3, Arithmetic::Float8},
    ProductType{"float8_e4m3fn", DataType::Float8E4M3, Arithmetic::Float8},  // PyTorch's name
    ProductType{"float8_e5m2", DataType::Float8E5M2, Arithmetic::Float8},
    ProductType{"float8_row", DataType::Float8E4M3, Arithmetic::Float8, Scales::Row},
    ProductType{"float8_block", DataType::Float8E4M3, Arithmetic::Float8, Scales::Square},
    ProductType{"mxfp8", DataType::Float8E4M3, Arithmetic::Float8, Scales::Mx},
    ProductType{"mxfp4", DataType::Float4E2M1, Arithmetic::Float4, Scales::Mx},
    ProductType{"nvfp4", DataType::Float4E2M1, Arithmetic::Float4, Scales::Nv},
    ProductType{"int8", DataType::Int8, Arithmetic::Int8},
    ProductType{"float", DataType::Float32, Arithmetic::Float32},  // as nccl-tests has them
    ProductType{"half", DataType::Float16, Arithmetic::Half},
    ProductType{"double", DataType::Float64, Arithmetic::Float64}};

}  // namespace

const ProductType& product_type(const std::string& name) {
  std::vector<std::string> known;
  for (const ProductType& type : kProductTypes) {
    if (type.name == name) return type;
    known.emplace_back(type.name);
  }
  const std::string hint = suggest(name, known);
  throw UsageError{fmt::format("unknown type '{}'\n  hint: {}", name,
                               hint.empty() ? fmt::format("{}", fmt::join(known, ", ")) : hint)};
}

void read_product_sizes(const std::string& text, products::Shape& shape) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* size : {&shape.m, &shape.n, &shape.k}) {
    if (size != &shape.m && at != end && *at++ != 'x') at = nullptr;
    const auto read = at == nullptr ? std::from_chars_result{end, std::errc::invalid_argument}
                                    : std::from_chars(at, end, *size);
    constexpr std::int64_t kMost = 1'000'000'000;
    if (read.ec != std::errc{} || *size < 1 || *size > kMost) {
      throw UsageError{
          fmt::format("'{}' is not the size of a product\n  hint: m, n and k, as in "
                      "4096x4096x1024",
                      text)};
    }
    at = read.ptr;
  }
  if (at != end) {
    throw UsageError{fmt::format("'{}': m, n and k, and nothing behind them", text)};
  }
}

}  // namespace foretrace
