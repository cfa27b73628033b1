// What a product launches and which kernels it gets, and what it waits for beside a kernel that
// uses the memory.
#include <gtest/gtest.h>

#include "models/cost/kernel.h"
#include "models/cost/products/choice.h"
#include "models/machine/machine.h"

namespace foretrace::products {
namespace {

struct ProductsOfAnH200 : ::testing::Test {
  Plan first_choice(const Shape& shape) {
    return likely_choices(shape, read_speeds(read_, family_of(shape))).front().plan;
  }
  cost::KernelCost cost_of(DataType type, std::int64_t m, std::int64_t n, std::int64_t k) {
    return cost::gemm_cost(read_, {.type = type, .m = m, .n = n, .k = k});
  }
  Machine machine_ = load_machine("h200-nvswitch-8");
  Reading read_{machine_};
};

TEST_F(ProductsOfAnH200, WaitForDataAsOftenAsTheyLoad) {
  EXPECT_DOUBLE_EQ(cost_of(DataType::Float32, 184, 256, 128).room.data_waits, 3);
  EXPECT_DOUBLE_EQ(cost_of(DataType::BFloat16, 297, 128, 97).room.data_waits, 4)
      << "4 steps of 32, and no more than 4 times";
  EXPECT_DOUBLE_EQ(cost_of(DataType::BFloat16, 128, 128, 779).room.data_waits, 3.3);
  EXPECT_DOUBLE_EQ(cost_of(DataType::Float16, 256, 128, 119).room.data_waits, 1.5);
  EXPECT_DOUBLE_EQ(cost_of(DataType::Float16, 128, 128, 64).room.data_waits, 1) << "nvjet";
}

TEST_F(ProductsOfAnH200, AskTheHostByTheirKernel) {
  EXPECT_DOUBLE_EQ(cost_of(DataType::BFloat16, 4096, 4096, 512).call_share, 1) << "nvjet";
  EXPECT_DOUBLE_EQ(cost_of(DataType::BFloat16, 4098, 4098, 512).call_share, 0.815) << "CUTLASS";
  EXPECT_DOUBLE_EQ(cost_of(DataType::Float32, 4096, 1, 512).call_share, 0.815) << "by a vector";
  EXPECT_DOUBLE_EQ(cost_of(DataType::Float64, 512, 512, 512).call_share, 1.21);
  machine_.leave_out(terms_of("term=call_share"));
  EXPECT_EQ(cost_of(DataType::Float64, 512, 512, 512).call_share, 1);
}

TEST_F(ProductsOfAnH200, ReadWeightsOfFourBitsInAThirdOfTheTimeAndMultiplyThemAsBfloat16) {
  const auto seconds_of = [&](std::int64_t rows, Scales scales) {
    return to_seconds(cost::gemm_cost(read_, {.type = DataType::BFloat16,
                                              .scales = scales,
                                              .m = 28672,
                                              .n = rows,
                                              .k = 8192,
                                              .transposes_a = true,
                                              .cached_eighths = 0})
                          .alone);
  };
  EXPECT_NEAR(seconds_of(8, Scales::Packed) / seconds_of(8, Scales::Tensor), 1.0 / 3, 0.07);
  EXPECT_NEAR(seconds_of(8192, Scales::Packed) / seconds_of(8192, Scales::Tensor), 1, 0.02);
}

}  // namespace
}  // namespace foretrace::products
