// What a product launches.
#include <gtest/gtest.h>

#include "models/cost/products/calls.h"

namespace foretrace::products {
namespace {

TEST(CallsOfProducts, ClearACounterForMoreThanTwoTilesOnAnSm) {
  const Plan plan{.tile_m = 128, .tile_n = 256};
  EXPECT_EQ(call_share(Family::Half, plan, 2), 1);
  EXPECT_GT(call_share(Family::Half, plan, 2.1), 1.15);
  EXPECT_EQ(call_share(Family::HalfPairs, plan, 5), call_share(Family::HalfPairs, plan, 1));
}

}  // namespace
}  // namespace foretrace::products
