// foretrace-hw products on a real GPU: three products, their rows plausible.
#include <gmock/gmock.h>

#include <filesystem>

#include "hw/products/choices.h"
#include "hw/products/gpu.h"
#include "hw/products/product_meter.h"
#include "hw/products/quick_timer.h"
#include "scenarios/base/text/text_file.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

TEST(ProductsOnGpu, TimesAndKernelsOfThreeProductsArePlausible) {
  FORETRACE_NEEDS_GPUS(1);
  const auto shapes = parse_shapes(
      "m,n,k,type,transa,transb,batch\n"
      "256,256,256,bfloat16,N,N,1\n"      // launch-bound
      "2048,1024,1024,float16,T,N,2\n"    // ten microseconds
      "4096,4096,4096,bfloat16,N,N,1\n",  // two hundred: no host is in its way
      "three");
  ProductMeter meter{{}, shapes};
  EXPECT_GT(meter.run().sm_count, 0U);
  for (const Shape& shape : shapes) {
    const auto rows = meter.measure(shape, {Contents::Zeros, Contents::Random});
    ASSERT_EQ(rows.size(), 2U);
    for (const ProductMeasurement& row : rows) {
      SCOPED_TRACE(key_of(shape) + " " + name_of(row.contents));
      ASSERT_FALSE(row.kernels.empty());
      const KernelLaunch& kernel = main_kernel(row.kernels);
      EXPECT_FALSE(kernel.name.empty());
      EXPECT_GT(kernel.grid[0] * kernel.block[0], 0U);
      EXPECT_GT(row.times.burst_us, 0.5);
      EXPECT_LT(row.times.burst_us, 1000);
      if (shape.m == 4096) {
        EXPECT_GE(row.times.sustained_us, 0.8 * row.times.burst_us);
      }
      EXPECT_GE(row.times.load_ms, 100);
      EXPECT_GE(row.times.burst_timings, 5U);  // a slow host has fewer in its time
      EXPECT_EQ(row.choice_status, "CUBLAS_STATUS_SUCCESS");
      ASSERT_TRUE(row.choice);
      EXPECT_GT(row.choice->waves, 0);
    }
  }
}

TEST(ProductsOnGpu, KernelsAreListedWithoutRunningThem) {
  FORETRACE_NEEDS_GPUS(1);
  const auto file = std::filesystem::path{testing::TempDir()} / "choices.csv";
  const ListedChoices listed =
      list_choices(parse_shapes("m,n,k,type,transa,transb\n4096,4096,4096,bfloat16,N,N\n"
                                "60000,60000,64,float32,N,N\n",
                                "two"),
                   {.seconds = 60}, file);
  EXPECT_EQ(listed.products, 2U);
  EXPECT_THAT(read_text_file(file),
              testing::HasSubstr("\n4096,4096,4096,bfloat16,bfloat16,N,N,1,0,1,"));
}

TEST(ProductsOnGpu, QuickTimesAreThoseOfTheMeter) {
  FORETRACE_NEEDS_GPUS(1);
  const auto shapes = parse_shapes(
      "m,n,k,type,transa,transb\n256,256,256,bfloat16,N,N\n4096,4096,4096,bfloat16,T,N\n", "two");
  const OwnStream stream;
  const ProductCublas cublas{stream};
  QuickTimer quick{stream, cublas, shapes, false};
  ProductMeter meter{{}, shapes};
  for (const Shape& shape : shapes) {
    const QuickTime time = quick.time(shape);
    const auto rows = meter.measure(shape, {Contents::Zeros});
    EXPECT_NEAR(time.us / rows.front().times.burst_us, 1, 0.15) << key_of(shape);  // 1.11 was seen
    EXPECT_EQ(time.in_graph, shape.m == 256);
    EXPECT_GT(time.sm_clock_mhz, 500);
    EXPECT_LT(time.sm_clock_mhz, 4000);
  }
}

TEST(ProductsOnGpu, TakeLongerWithOperandsThatNoCacheHas) {
  FORETRACE_NEEDS_GPUS(1);
  const auto shapes = parse_shapes("m,n,k,type,transa,transb\n4096,8,4096,bfloat16,T,N\n", "one");
  const OwnStream stream;
  const ProductCublas cublas{stream};
  const double same = QuickTimer{stream, cublas, shapes, false}.time(shapes.front()).us;
  const double rotated = QuickTimer{stream, cublas, shapes, true}.time(shapes.front()).us;
  EXPECT_GT(rotated, 1.15 * same) << "33.6 MB of weights";
}

}  // namespace
}  // namespace foretrace::hw
