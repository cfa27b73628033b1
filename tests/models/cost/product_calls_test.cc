// What a product launches and which kernels it gets, and what it waits for beside a kernel that
// uses the memory.
#include <gtest/gtest.h>

#include "models/cost/kernel.h"
#include "models/cost/products/calls.h"
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

TEST(CallsOfProducts, ClearACounterForMoreThanTwoTilesOnAnSm) {
  const Plan plan{.tile_m = 128, .tile_n = 256};
  const Shape whole{.m = 4096, .n = 4096, .k = 512};
  EXPECT_EQ(call_share(family_of(whole), whole, plan, 2), 1);
  EXPECT_GT(call_share(family_of(whole), whole, plan, 3), 1.15);
  const Shape pairs{.m = 4098, .n = 4098, .k = 512};
  EXPECT_EQ(call_share(family_of(pairs), pairs, plan, 5),
            call_share(family_of(pairs), pairs, plan, 1))
      << "an older kernel";
  const Shape row{.m = 4096, .n = 1, .k = 512};
  EXPECT_EQ(call_share(family_of(row), row, plan, 5), call_share(family_of(row), row, plan, 1));
}

}  // namespace
}  // namespace foretrace::products
