// Products without a GPU: the list, its shards, the arithmetic, the table that a run goes on with.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hw/products/load_times.h"
#include "hw/products/product_table.h"
#include "hw/products/shapes.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kColumns = "m,n,k,type,transa,transb\n";

std::string mistake(const std::string& text) {
  try {
    parse_shapes(text, "list.csv");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(ProductShapes, AreReadWithTheirDefaults) {
  const auto shapes = parse_shapes(
      "# a comment\nm,n,k,type,c_type,transa,transb,batch,beta,family,part,note\n\n"
      "64,32,16,bfloat16,float32,N,T,1,1,training,judge,by the weight\r\n"
      "8,4,2,float64,,T,N,3,0,random,fit,\n",
      "list.csv");
  ASSERT_THAT(shapes, SizeIs(2));
  EXPECT_EQ(key_of(shapes[0]), "64,32,16,bfloat16,float32,N,T,1,1");
  EXPECT_EQ(shapes[0].note, "by the weight");
  EXPECT_EQ(shapes[0].part, "judge");
  EXPECT_EQ(shapes[0].c_bytes(), 64U * 32 * 4);
  EXPECT_EQ(key_of(shapes[1]), "8,4,2,float64,float64,T,N,3,0");
  EXPECT_EQ(shapes[1].a_bytes(), 8U * 2 * 3 * 8);
  EXPECT_DOUBLE_EQ(shapes[1].flop(), 2.0 * 8 * 4 * 2 * 3);
}

TEST(ProductShapes, ABadCellIsNamedWithLineAndColumn) {
  EXPECT_THAT(mistake(std::string{kColumns} + "8,0,8,float16,N,N\n"),
              HasSubstr("list.csv:2:3: error: '0' is not a number from 1"));
  EXPECT_THAT(mistake(std::string{kColumns} + "8,8,8,float16,N,N\n8,8,8,bfloat61,N,N\n"),
              HasSubstr("list.csv:3:7: error: unknown type 'bfloat61'"));
  EXPECT_THAT(mistake(std::string{kColumns} + "8,8,8,bfloat61,N,N\n"),
              HasSubstr("did you mean 'bfloat16'?"));
  EXPECT_THAT(mistake(std::string{kColumns} + "8,8,8,float16,N,X\n"), HasSubstr("list.csv:2:17:"));
  EXPECT_THAT(mistake(std::string{kColumns} + "8,8,8,float16,N\n"),
              HasSubstr("5 cells, but 6 columns"));
}

TEST(ProductShapes, EveryMistakeOfAFileIsToldAtOnce) {
  const std::string what =
      mistake(std::string{kColumns} + "x,8,8,float16,N,N\n8,8,-1,float16,N,N\n");
  EXPECT_THAT(what, HasSubstr("list.csv:2:1:"));
  EXPECT_THAT(what, HasSubstr("list.csv:3:5:"));
}

TEST(ProductShapes, ListsThatCannotBeMeantAreRefused) {
  EXPECT_THAT(mistake(""), HasSubstr("no line of column names"));
  EXPECT_THAT(mistake("m,n,k,type,transa\n"), HasSubstr("column 'transb' is missing"));
  EXPECT_THAT(mistake("m,n,k,typ,transa,transb\n"), HasSubstr("did you mean 'type'?"));
  EXPECT_THAT(mistake(std::string{kColumns} + "8,8,8,float16,N,N\n8,8,8,float16,N,N\n"),
              HasSubstr("list.csv:3:1: error: this product is there twice"));
  EXPECT_THAT(mistake("m,n,k,type,c_type,transa,transb\n8,8,8,float64,float32,N,N\n"),
              HasSubstr("c_type float32 with type float64"));
  EXPECT_THAT(mistake(std::string{kColumns} + "1000000,1000000,8,float16,N,N\n"),
              HasSubstr("an operand of 2000.0 GB"));
}

TEST(ProductShapes, ShardsShareTheListWithoutGapOrOverlap) {
  std::string text = kColumns;
  for (int m = 1; m <= 7; ++m) text += std::to_string(m) + ",8,8,float16,N,N\n";
  const auto shapes = parse_shapes(text, "list.csv");
  std::vector<std::int64_t> seen;
  for (const char* part : {"1/3", "2/3", "3/3"}) {
    for (const Shape& shape : shard_of(shapes, parse_shard(part))) seen.push_back(shape.m);
  }
  EXPECT_THAT(seen, ElementsAre(1, 4, 7, 2, 5, 3, 6));
  for (const char* wrong : {"0/2", "3/2", "1", "1/", "a/b", "1/2x", "-1/2"}) {
    EXPECT_THROW(parse_shard(wrong), UsageError) << wrong;
  }
}

TEST(ProductShapes, TheShippedListHoldsOutAThirdOfEveryFamily) {
  const auto shapes =
      read_shapes(data_directory().string() + "/reports/measured/products/shapes.csv");
  EXPECT_THAT(shapes, SizeIs(840));
  for (const char* family : {"training", "random", "skinny", "ladder", "attention"}) {
    const auto of_family = [&](const Shape& s) { return s.family == family; };
    const auto all = std::ranges::count_if(shapes, of_family);
    const auto judged = std::ranges::count_if(
        shapes, [&](const Shape& s) { return of_family(s) && s.part == "judge"; });
    EXPECT_GT(judged, all / 5) << family;
    EXPECT_LT(judged, all * 3 / 5) << family;
  }
}

TEST(LoadTimes, BurstIsTheFirstThirtyMillisecondsWithoutTheRamp) {
  // 0.5 ms a timing at first, then 1 ms: 60 until 30 ms, 170 until 200 ms.
  std::vector<double> ends;
  for (int i = 1; i <= 60; ++i) ends.push_back(0.5 * i);
  for (int i = 1; i <= 170; ++i) ends.push_back(30 + i);
  const LoadTimes times = load_times(ends, 10);
  EXPECT_DOUBLE_EQ(times.burst_us, 50);
  EXPECT_EQ(times.burst_timings, 58U) << "the first millisecond's two are left out";
  EXPECT_DOUBLE_EQ(times.sustained_us, 100);
  EXPECT_EQ(times.sustained_timings, 30U);
  EXPECT_DOUBLE_EQ(times.sustained_from_ms, 170);
  EXPECT_DOUBLE_EQ(times.load_ms, 200);
}

TEST(LoadTimes, AProductLongerThanTheBurstIsItsOwnBurst) {
  const LoadTimes times = load_times(std::vector<double>{40, 85}, 1);
  EXPECT_DOUBLE_EQ(times.burst_us, 40'000);
  EXPECT_DOUBLE_EQ(times.sustained_us, 45'000);
  EXPECT_DOUBLE_EQ(times.sustained_from_ms, 40);
}

TEST(LoadTimes, RatesAndProductsPerTiming) {
  EXPECT_DOUBLE_EQ(tflops(2e12, 4000), 500);  // 2 TFLOP in 4 ms
  EXPECT_EQ(products_per_timing(600, 500, 1000), 1U);
  EXPECT_EQ(products_per_timing(15, 500, 1000), 34U);
  EXPECT_EQ(products_per_timing(0.1, 500, 1000), 1000U);
}

class ProductTableFile : public testing::Test {
 protected:
  ProductTableFile() { std::filesystem::remove(file_); }
  ~ProductTableFile() override { std::filesystem::remove(file_); }
  std::filesystem::path file_ =
      std::filesystem::path{testing::TempDir()} /
      (std::string{"products_"} + testing::UnitTest::GetInstance()->current_test_info()->name());
  Shape shape_ = parse_shapes(std::string{kColumns} + "64,32,16,float16,T,N\n", "list.csv").at(0);
  ProductRun run_{"a GPU, with a comma", 132, "13.0.2", false, 25};
};

ProductMeasurement measurement() {
  ProductMeasurement row;
  row.contents = Contents::Random;
  row.times.burst_us = 2;
  row.times.sustained_us = 4;
  row.burst.sm_clock_mhz = 1980;
  row.kernels = {{"reduce", {4, 1, 1}, {64, 1, 1}, {1, 1, 1}, 0, 256, 32, 8},
                 {"multiply", {66, 2, 1}, {384, 1, 1}, {2, 1, 1}, 200'000, 0, 168, 1}};
  row.choice = LtChoice{.algorithm = 66, .tile = 20, .split_k = 1, .waves = 0.5};
  row.choice_status = "CUBLAS_STATUS_SUCCESS";
  return row;
}

TEST_F(ProductTableFile, ARowHasACellForEveryColumn) {
  for (const bool is_full : {true, false}) {
    const ProductMeasurement row = is_full ? measurement() : ProductMeasurement{};
    const std::string header = product_header();
    const std::string text = product_row(run_, shape_, row);
    const auto columns = csv_cells(header);
    const auto cells = csv_cells(text);
    ASSERT_EQ(columns.size(), cells.size());
    if (!is_full) continue;
    const auto cell = [&](std::string_view column) {
      return cells.at(
          static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin()));
    };
    EXPECT_EQ(cell("transa"), "T");
    EXPECT_EQ(cell("contents"), "random");
    EXPECT_EQ(cell("gpu"), "a GPU; with a comma");
    EXPECT_EQ(cell("burst_us"), "2.0000");
    EXPECT_EQ(cell("sustained_tflops"), "0.01638");  // 2 * 64 * 32 * 16 in 4 us
    EXPECT_EQ(cell("burst_sm_clock_mhz"), "1980.0");
    EXPECT_EQ(cell("kernels"), "2");
    EXPECT_EQ(cell("kernel"), "multiply") << "the one with the most shared memory";
    EXPECT_EQ(cell("kernel_names"), "reduce+multiply");
    EXPECT_EQ(cell("grid_x"), "66");
    EXPECT_EQ(cell("cluster_x"), "2");
    EXPECT_EQ(cell("lt_tile"), "20");
    EXPECT_EQ(cell("lt_waves"), "0.5000");
  }
}

TEST_F(ProductTableFile, KnowsWhatItHoldsWhenOpenedAgain) {
  {
    ProductTable table{file_};
    EXPECT_FALSE(table.has(shape_, Contents::Random, false));
    table.append(run_, shape_, measurement());
  }
  const ProductTable again{file_};
  EXPECT_TRUE(again.has(shape_, Contents::Random, false));
  EXPECT_FALSE(again.has(shape_, Contents::Zeros, false));
  EXPECT_FALSE(again.has(shape_, Contents::Random, true));
}

TEST_F(ProductTableFile, ALineThatWasCutOffIsMeasuredAgain) {
  {
    ProductTable table{file_};
    table.append(run_, shape_, measurement());
  }
  const std::string whole = read_text_file(file_);
  std::filesystem::resize_file(file_, whole.size() - 1);
  {
    ProductTable table{file_};
    EXPECT_FALSE(table.has(shape_, Contents::Random, false));
    table.append(run_, shape_, measurement());
  }
  EXPECT_EQ(read_text_file(file_), whole);
}

TEST_F(ProductTableFile, OfOtherColumnsIsLeftAlone) {
  std::ofstream{file_} << "m,n,k\n1,2,3\n";
  EXPECT_THROW(ProductTable{file_}, UsageError);
  EXPECT_EQ(read_text_file(file_), "m,n,k\n1,2,3\n");
}

}  // namespace
}  // namespace foretrace::hw
