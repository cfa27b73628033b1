#include "reports/compare/rates.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

OpRow row_of(std::string kind, std::uint64_t size_bytes, std::uint32_t ranks = 0) {
  OpRow row;
  row.kind = std::move(kind);
  row.size_bytes = size_bytes;
  row.ranks = ranks;
  return row;
}

TEST(Rates, OfAProductAreItsFloatingPointOperations) {
  OpRow product = row_of("gemm", 0);
  product.shape = {4096, 2048, 1024};  // 2 * 2^12 * 2^11 * 2^10 = 2^34
  const auto work = amount_of(product, 0);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->amount, 17'179'869'184.0);
  EXPECT_EQ(format_rate(*work, 34'359.738368), "500.0 TFLOP/s");
  EXPECT_EQ(format_rate(*work, 0), "");
  product.shape.push_back(3);
  EXPECT_EQ(amount_of(product, 0)->amount, 3 * 17'179'869'184.0) << "a batch of three";
}

TEST(Rates, OfCollectivesAreNcclTestsBusBandwidth) {
  // 1 MB in 1 ms is 1 GB/s of algorithm bandwidth.
  const auto rate = [](const std::string& kind) {
    const auto work = amount_of(row_of(kind, 1'000'000, 4), 0);
    return work ? format_rate(*work, 1e6) : "none";
  };
  EXPECT_EQ(rate("nccl_all_reduce"), "1.500 GB/s");  // 2 (4 - 1) / 4
  EXPECT_EQ(rate("nccl_all_gather"), "3.000 GB/s");  // 4 MB in all, times (4 - 1) / 4
  EXPECT_EQ(rate("nccl_broadcast"), "1.000 GB/s");
  EXPECT_EQ(rate("nccl_send"), "1.000 GB/s");
  EXPECT_EQ(rate("event_record"), "none");
}

TEST(Rates, OfASweepAreThoseOfTheInstance) {
  OpRow region = row_of("region", 0);
  region.work = "memcpy_async";
  region.sizes = {1'000, 2'000};
  EXPECT_EQ(size_of(region, 1), 2'000U);
  EXPECT_EQ(format_rate(*amount_of(region, 1), 1'000), "2.000 GB/s");
  region.work = "spin";
  EXPECT_FALSE(amount_of(region, 1));
}

}  // namespace
}  // namespace foretrace
