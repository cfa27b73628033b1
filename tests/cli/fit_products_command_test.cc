// `foretrace fit-products` as its user meets it: what goes together, and lists and tables that
// cannot be meant. Nothing is written where something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kHead =
    "# GPU\nm,n,k,type,c_type,transa,transb,batch,beta,kernels,kernel,grid_x,grid_y,grid_z,threads,"
    "cluster_x,cluster_y,blocks_per_sm\n";

Ran choices(const Scratch& scratch, const std::string& row, const std::string& more = "") {
  scratch.write("list.csv", std::string{kHead} + row + "\n");
  return scratch.run("foretrace fit-products --choices list.csv " + more);
}

TEST(FitProductsCommand, NamesTheLineAndTheColumnOfARowThatCannotBe) {
  const Scratch scratch;
  const std::string rest = ",1,0,1,nvjet_sm90_tst_64x8_64x16_2x1_v_bz_NNN,2,64,1,384,2,1,1";
  struct Row {
    const char* text;
    const char* says;
  };
  for (const Row& row : {Row{"0,8,8,bfloat16,bfloat16,N,N", "list.csv:3: m is '0'"},
                         Row{"8.5,8,8,bfloat16,bfloat16,N,N", "list.csv:3: m is '8.5'"},
                         Row{"8,-8,8,bfloat16,bfloat16,N,N", "list.csv:3: n is '-8'"},
                         Row{"8,8,seven,bfloat16,bfloat16,N,N", "list.csv:3: k is 'seven'"},
                         Row{"8,8,8,bfloat17,bfloat16,N,N", "unknown type 'bfloat17'"},
                         Row{"8,8,8,bfloat16,banana,N,N", "c_type is 'banana'"},
                         Row{"8,8,8,bfloat16,bfloat16,yes,N", "transa is 'yes'"},
                         Row{"2000000000,2000000000,8,float32,float32,N,N", "10^15 elements"}}) {
    const Ran ran = choices(scratch, row.text + rest);
    EXPECT_EQ(ran.exit_code, 2) << row.text;
    EXPECT_THAT(ran.err, HasSubstr(row.says)) << row.text;
  }
}

TEST(FitProductsCommand, WritesNothingWhereTooLittleIsLearned) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "taste");
  const Ran ran = choices(scratch,
                          "4096,32,7168,bfloat16,bfloat16,T,N,1,0,2,"
                          "nvjet_sm90_tst_0x32_64x16_2x1_v_bz_splitK_TNT,2,64,1,384,2,1,1",
                          "--taste-to taste");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("too few products of half to learn from; nothing is written"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path() / "taste"));
}

TEST(FitProductsCommand, RefusesOptionsThatDoNotGoTogether) {
  const Scratch scratch;
  scratch.write("list.csv", kHead);
  for (const char* arguments :
       {"--choices list.csv --judge", "--choices list.csv --tiles",
        "--choices list.csv --losses-to .", "--losses a=b --machine h200-nvswitch-8",
        "--losses a=b --taste-to .", "list.csv --losses-to .", "list.csv --judge --tiles",
        "list.csv --taste-to .", "--choices list.csv --taste-to missing",
        "--losses h200-nvswitch-8", "--losses nonsense=list.csv", ""}) {
    const Ran ran = scratch.run(std::string{"foretrace fit-products "} + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err, "") << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
  }
}

TEST(FitProductsCommand, RefusesAGpuWithoutAWholeMultiprocessor) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace explain-kernel gemm 512x512x512 --machine h200-nvswitch-8 --with "
      "gpu.sm_count=0.5");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("gpu.sm_count"));
  EXPECT_EQ(
      scratch.run("foretrace explain-kernel gemm 200000000x200000000x64 --batch 1000000").exit_code,
      2);
}

}  // namespace
}  // namespace foretrace::test
