// A scenario's products against sums on the host: transposed operands, a batch, what is added to.
#include "hw/cuda/gemm.h"

#include <cuda_fp8.h>

#include "hw/cuda/device_guard.h"
#include "scenarios/base/text/errors.h"
#include "tests/hw/gpu/device_vector.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

/// Small whole numbers, whose sums are exact in float64.
std::vector<double> numbers(std::int64_t count, int seed) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(static_cast<double>((i * 7 + seed * 5) % 11 - 5));
  }
  return all;
}

/// Column-major, one matrix of the batch behind the other.
std::vector<double> product_of(const CublasProduct& shape, const std::vector<double>& a,
                               const std::vector<double>& b, std::vector<double> c) {
  const auto at = [](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t first) {
    return static_cast<std::size_t>(first + column * rows + row);
  };
  for (std::int64_t i = 0; i < shape.batch; ++i) {
    for (std::int64_t row = 0; row < shape.m; ++row) {
      for (std::int64_t column = 0; column < shape.n; ++column) {
        double& sum = c[at(row, column, shape.m, i * shape.m * shape.n)];
        if (shape.beta == 0) sum = 0;
        const std::int64_t of_a = i * shape.m * shape.k, of_b = i * shape.k * shape.n;
        for (std::int64_t inner = 0; inner < shape.k; ++inner) {
          sum += a[shape.transposes_a ? at(inner, row, shape.k, of_a)
                                      : at(row, inner, shape.m, of_a)] *
                 b[shape.transposes_b ? at(column, inner, shape.n, of_b)
                                      : at(inner, column, shape.k, of_b)];
        }
      }
    }
  }
  return c;
}

TEST(GemmHandle, MultipliesAsTheScenarioSays) {
  FORETRACE_NEEDS_GPUS(1);
  use_device(0);
  const Stream stream{foretrace::Stream{}, 0};
  const GemmHandle handle{stream};
  for (int way = 0; way < 16; ++way) {
    const CublasProduct shape{.m = 3,
                              .n = 5,
                              .k = 4,
                              .transposes_a = (way & 1) != 0,
                              .transposes_b = (way & 2) != 0,
                              .batch = (way & 4) != 0 ? 3 : 1,
                              .beta = (way & 8) != 0 ? 1 : 0};
    const auto a = numbers(shape.batch * shape.m * shape.k, 1);
    const auto b = numbers(shape.batch * shape.k * shape.n, 2);
    const auto c = numbers(shape.batch * shape.m * shape.n, 3);
    const DeviceVector<double> on_a{a}, on_b{b}, on_c{c};
    handle.multiply(shape, GemmTypes::plain(DataType::Float64), on_a.data(), on_b.data(), on_c.data());
    cuda_check(cudaDeviceSynchronize());
    EXPECT_EQ(on_c.read(), product_of(shape, a, b, c)) << way;
  }
}

/// Of whole numbers, all of whose sums are exact: `Operand` are multiplied, `Result` come out.
template <class Operand, class Result>
void expect_exact(const GemmTypes& types, const CublasProduct& shape) {
  FORETRACE_NEEDS_GPUS(1);
  use_device(0);
  const Stream stream{foretrace::Stream{}, 0};
  const GemmHandle handle{stream};
  const auto a = numbers(shape.batch * shape.m * shape.k, 1);
  const auto b = numbers(shape.batch * shape.k * shape.n, 2);
  const auto c = numbers(shape.batch * shape.m * shape.n, 3);
  const auto as = [](const std::vector<double>& all, auto one) {
    std::vector<decltype(one)> made;
    for (const double value : all) made.push_back(decltype(one)(static_cast<float>(value)));
    return made;
  };
  const DeviceVector<Operand> on_a{as(a, Operand{})}, on_b{as(b, Operand{})};
  const DeviceVector<Result> on_c{as(c, Result{})};
  for (int turn = 0; turn < 2; ++turn) {  // the second one takes what the first one prepared
    handle.multiply(shape, types, on_a.data(), on_b.data(), on_c.data());
  }
  cuda_check(cudaDeviceSynchronize());
  const auto read = on_c.read();
  EXPECT_EQ(std::vector<double>(read.begin(), read.end()), product_of(shape, a, b, c));
}

constexpr CublasProduct kNarrowShape{.m = 48, .n = 32, .k = 64, .transposes_a = true};

TEST(GemmHandle, MultipliesFloat8IntoFloat32) {
  expect_exact<__nv_fp8_e4m3, float>({DataType::Float8E4M3, DataType::Float32}, kNarrowShape);
}
TEST(GemmHandle, MultipliesABatchOfFloat8) {
  CublasProduct shape = kNarrowShape;
  shape.batch = 3;
  expect_exact<__nv_fp8_e4m3, float>({DataType::Float8E4M3, DataType::Float32}, shape);
}
TEST(GemmHandle, MultipliesInt8IntoInt32) {
  expect_exact<std::int8_t, std::int32_t>({DataType::Int8, DataType::Int32}, kNarrowShape);
}
TEST(GemmHandle, MultipliesFloat32InTf32) {
  expect_exact<float, float>({DataType::Float32, DataType::Float32, true}, kNarrowShape);
}

TEST(GemmHandle, SaysWhichLayoutFloat8Takes) {
  FORETRACE_NEEDS_GPUS(1);
  use_device(0);
  const Stream stream{foretrace::Stream{}, 0};
  const GemmHandle handle{stream};
  CublasProduct shape = kNarrowShape;
  shape.k = 63;
  EXPECT_THROW(handle.multiply(shape, {DataType::Float8E4M3, DataType::BFloat16}, nullptr, nullptr,
                               nullptr),
               UsageError);
}

}  // namespace
}  // namespace foretrace::hw
