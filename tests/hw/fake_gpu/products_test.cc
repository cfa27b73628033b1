// The whole of foretrace-hw products, on a stand-in for the GPU: lists, shards, going on.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenarios/base/text/text_file.h"
#include "tests/hw/fake_gpu/run.h"

namespace foretrace::hw {
namespace {

using testing::HasSubstr;

class FakeProducts : public FakeGpu {
 protected:
  std::filesystem::path list(const std::string& rows) const {
    const auto file = directory_ / "list.csv";
    std::ofstream{file} << "m,n,k,type,transa,transb\n" << rows;
    return file;
  }
  Ended products(const std::filesystem::path& list, const std::string& arguments = "") const {
    return run_shell(fmt::format("{} products {} -o {} {}", FORETRACE_HW_FAKE, list.string(),
                                 table().string(), arguments));
  }
  std::filesystem::path table() const { return directory_ / "products.csv"; }
  std::ptrdiff_t lines() const { return std::ranges::count(read_text_file(table()), '\n'); }
};

constexpr const char* kThree = "8,8,8,float16,N,N\n16,8,8,float16,N,N\n24,8,8,float16,N,N\n";

TEST_F(FakeProducts, WritesARowForEachProductAndContents) {
  const Ended ended = products(list(kThree));
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(lines(), 1 + 3 * 2);
  EXPECT_THAT(read_text_file(table()), HasSubstr("\n24,8,8,float16,float16,N,N,1,0,random,same,"));
}

TEST_F(FakeProducts, GoesOnWhereItWasCutOff) {
  ASSERT_EQ(products(list(kThree)).exit_code, 0);
  const std::string whole = read_text_file(table());
  std::filesystem::resize_file(table(), whole.size() - 10);
  const Ended again = products(list(kThree));
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("3 of 3 products here, 2 measured before"));
  EXPECT_EQ(read_text_file(table()), whole);
}

TEST_F(FakeProducts, ShardsTogetherAreTheList) {
  ASSERT_EQ(products(list(kThree), "--shard 2/2").exit_code, 0);
  EXPECT_EQ(lines(), 1 + 1 * 2);
  ASSERT_EQ(products(list(kThree), "--shard 1/2").exit_code, 0);
  EXPECT_EQ(lines(), 1 + 3 * 2);
}

TEST_F(FakeProducts, ARefusedProductDoesNotEndTheOthers) {
  const Ended ended = products(list("13,8,8,float16,N,N\n" + std::string{kThree}));
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.output, HasSubstr("not measured: 13,8,8,"));
  EXPECT_EQ(lines(), 1 + 3 * 2);
}

TEST_F(FakeProducts, ListsTheKernelsOfProductsWithoutRunningThem) {
  const Ended ended =
      products(list("13,8,8,float16,N,N\n" + std::string{kThree}), "--choices-only");
  ASSERT_EQ(ended.exit_code, 4) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("3 of 4 products listed, 1 refused"));
  EXPECT_THAT(read_text_file(table()), HasSubstr("\n24,8,8,float16,float16,N,N,1,0,1,tile\n"));
  EXPECT_EQ(products(list(kThree), "--choices-only").exit_code, 0) << "over a list";
  EXPECT_EQ(products(list(kThree), "--seconds 3").exit_code, 2) << "needs --choices-only";
  EXPECT_EQ(products(list(kThree), "--choices-only --quick").exit_code, 2);
  EXPECT_EQ(products(list(kThree), "--quick --seconds 3").exit_code, 0);
  EXPECT_THAT(read_text_file(table()),
              HasSubstr("\n24,8,8,float16,float16,N,N,1,0,1,tile,same,7\n"));
  EXPECT_EQ(products(list(kThree), "--quick --rotate").exit_code, 0);
  EXPECT_THAT(read_text_file(table()), HasSubstr(",tile,rotated,7\n"));
  EXPECT_EQ(products(list(kThree), "--choices-only --rotate").exit_code, 2);
  std::ofstream{table()} << "m,n,k\n";
  const Ended over = products(list(kThree), "--choices-only");
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_EQ(read_text_file(table()), "m,n,k\n") << "a table stays";
}

TEST_F(FakeProducts, WrongUseSaysWhereAndIsExitCodeTwo) {
  const Ended bad = products(list("8,8,x,float16,N,N\n"));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.output, HasSubstr("list.csv:2:5: error: 'x' is not a number"));
  EXPECT_FALSE(std::filesystem::exists(table()));
  EXPECT_EQ(products(list(kThree), "--shard 3/2").exit_code, 2);
  EXPECT_EQ(products(directory_ / "missing.csv").exit_code, 2);
}

}  // namespace
}  // namespace foretrace::hw
