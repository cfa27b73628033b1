// What a product's blocks hold of a GPU: SMs in pairs.
#include <gtest/gtest.h>

#include "models/cost/products/time.h"

namespace foretrace::products {
namespace {

TEST(TilesOfNvjet, ComeInPairsWhereThatMakesNoWaveMore) {
  // What an H200 was seen to do (hw/laboratory/causes/windows.py): 264 fill two waves of 132.
  EXPECT_EQ(paired_tiles({.m = 1408, .n = 5048, .k = 4224}, {.tile_m = 128, .tile_n = 216}, 132),
            264)
      << "11 x 24: paired along n";
  EXPECT_EQ(paired_tiles({.m = 2688, .n = 3072, .k = 3648}, {.tile_m = 128, .tile_n = 256}, 132),
            264)
      << "21 x 12: a row of empty ones";
  EXPECT_EQ(paired_tiles({.m = 2304, .n = 3072, .k = 3072}, {.tile_m = 256, .tile_n = 128}, 132),
            216)
      << "9 x 24";
  EXPECT_EQ(paired_tiles({.m = 128, .n = 384, .k = 64}, {.tile_m = 128, .tile_n = 128}, 3), 3)
      << "a wave more, either way: no pairs";
  EXPECT_EQ(paired_tiles({.m = 128, .n = 128, .k = 64, .batch = 7},
                         {.tile_m = 128, .tile_n = 128, .split = 2}, 132),
            14);
}

}  // namespace
}  // namespace foretrace::products
