// `foretrace fit-products` as its user meets it: what goes together, and lists and tables that
// cannot be meant. Nothing is written where something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

constexpr const char* kHead =
    "# GPU\nm,n,k,type,c_type,transa,transb,batch,beta,kernels,kernel,grid_x,grid_y,grid_z,threads,"
    "cluster_x,cluster_y,blocks_per_sm\n";

// As foretrace-hw products wrote them (reports/measured/products).
constexpr const char* kTable =
    "m,n,k,type,c_type,transa,transb,batch,beta,contents,operands,family,part,note,gpu,sms,cubl"
    "as,rest_ms,timed_by,products_per_timing,burst_us,burst_timings,sustained_us,sustained_timi"
    "ngs,sustained_from_ms,load_ms,burst_tflops,sustained_tflops,burst_sm_clock_mhz,burst_power"
    "_w,sustained_sm_clock_mhz,sustained_power_w,sustained_clock_limits_mask,kernels,kernel_nam"
    "es,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,cluster_x,cluster_y,cluster_z,dynam"
    "ic_shared_bytes,static_shared_bytes,registers_per_thread,blocks_per_sm,lt_status,lt_algori"
    "thm,lt_tile,lt_stages,lt_cluster_shape,lt_inner_shape,lt_split_k,lt_reduction_scheme,lt_sw"
    "izzle,lt_custom_option,lt_waves,lt_workspace_bytes\n"
    "3072,4096,4096,bfloat16,bfloat16,T,N,1,0,zeros,same,training,fit,llama3_8b qkv 1/2 forward"
    ",NVIDIA H200,132,13.1.0,25,stream,5,120.2175,47,129.2000,46,125.2,154.9,857.4,797.8,1980.0"
    ",136.1,1845.0,430.4,0x0,1,nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT,nvjet_sm90_tst_25"
    "6x128_64x4_1x2_h_bz_coopA_TNT,2,66,1,384,1,1,2,1,1,213188,0,168,1,CUBLAS_STATUS_SUCCESS,66"
    ",24,35,5,0,1,0,0,7,2.9091,4\n"
    "3072,4096,4096,bfloat16,bfloat16,T,N,1,0,random,same,training,fit,llama3_8b qkv 1/2 forwar"
    "d,NVIDIA H200,132,13.1.0,25,stream,5,124.5567,45,141.1392,42,124.5,154.2,827.6,730.3,1845."
    "0,430.4,1680.0,734.9,0x4,1,nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT,nvjet_sm90_tst_2"
    "56x128_64x4_1x2_h_bz_coopA_TNT,2,66,1,384,1,1,2,1,1,213188,0,168,1,CUBLAS_STATUS_SUCCESS,6"
    "6,24,35,5,0,1,0,0,7,2.9091,4\n"
    "4096,7168,4096,bfloat16,bfloat16,N,T,1,0,zeros,same,training,judge,llama3_8b ffn up 1/2 by"
    " the weight,NVIDIA H200,132,13.1.0,25,stream,2,286.1919,50,298.0881,50,165.3,195.2,840.4,8"
    "06.9,1680.0,734.9,1830.0,435.1,0x4,1,nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN,nvjet_"
    "sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN,2,66,1,384,1,1,2,1,1,213188,0,168,1,CUBLAS_STATUS"
    "_SUCCESS,66,23,35,3,0,1,0,0,4,6.7879,4\n";

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
  std::filesystem::create_directory(scratch.path() / "heuristic");
  const Ran ran = choices(scratch,
                          "4096,32,7168,bfloat16,bfloat16,T,N,1,0,2,"
                          "nvjet_sm90_tst_0x32_64x16_2x1_v_bz_splitK_TNT,2,64,1,384,2,1,1",
                          "--heuristic-to heuristic");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("too few products of half to learn from; nothing is written"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path() / "heuristic"));
}

/// Five folds of nothing would be parameters of nothing.
TEST(FitProductsCommand, RefusesATableWithoutARow) {
  const Scratch scratch;
  scratch.write("list.csv", "[[[[");
  for (const char* more : {"", " --judge"}) {
    const Ran ran = scratch.run(std::string{"foretrace fit-products list.csv"} + more);
    EXPECT_EQ(ran.exit_code, 2) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("list.csv: no row of a product in it"));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(FitProductsCommand, RefusesOptionsThatDoNotGoTogether) {
  const Scratch scratch;
  scratch.write("list.csv", kHead);
  for (const char* arguments :
       {"--choices list.csv --judge", "--choices list.csv --tiles",
        "--choices list.csv --residuals-to .", "--residuals a=b --machine h200-nvswitch-8",
        "--residuals a=b --heuristic-to .", "list.csv --residuals-to .", "list.csv --judge --tiles",
        "list.csv --heuristic-to .", "--choices list.csv --heuristic-to missing",
        "--residuals h200-nvswitch-8", "--residuals nonsense=list.csv", ""}) {
    const Ran ran = scratch.run(std::string{"foretrace fit-products "} + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    EXPECT_NE(ran.err, "") << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
  }
}

TEST(FitProductsCommand, WritesItsErrorsAsJsonAndCsv) {
  const Scratch scratch;
  scratch.write("t.csv", kTable);
  const std::string judge = "foretrace fit-products t.csv --judge --machine h200-nvswitch-8 ";
  const Ran json = scratch.run(judge + "--format json");
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["machine"], "h200-nvswitch-8");
  const std::size_t rows = answer["learned_from"].size() + answer["held_out"].size();
  ASSERT_GT(rows, 0u) << json.out;
  const Ran csv = scratch.run(judge + "--format csv");
  EXPECT_THAT(csv.out, testing::StartsWith("list,of,rows,median,percentile_90,bias\n"));
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), static_cast<std::ptrdiff_t>(rows) + 1);
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

TEST(ExplainKernel, OfEveryKindSaysItsTermsAndTheirEvidence) {
  const Scratch scratch;
  const Ran small = scratch.run("foretrace explain-kernel elementwise 100KiB");
  EXPECT_EQ(small.exit_code, 0) << small.err;
  EXPECT_THAT(small.out, HasSubstr("small_array"));
  EXPECT_THAT(small.out, HasSubstr("models/evidence/memory.md"));
  EXPECT_THAT(small.out, HasSubstr("kernel.base"));
  const Ran product = scratch.run("foretrace explain-kernel gemm 512x512x512 -d bfloat16");
  EXPECT_THAT(product.out, HasSubstr("residual"));
  for (const char* const kind : {"reduction", "memset", "copy"}) {
    EXPECT_EQ(
        scratch.run(std::string{"foretrace explain-kernel "} + kind + " 4MiB --cold").exit_code, 0)
        << kind;
  }
}

TEST(ExplainKernel, OfAProductKnowsEveryTypeThatItsGpuMultiplies) {
  const Scratch scratch;
  const std::string b200 = "foretrace explain-kernel gemm 8192x8192x8192 --machine 8xB200 -d ";
  for (const char* const type : {"float8_e4m3fn", "float8_e5m2", "float8_row", "float8_block",
                                 "mxfp8", "mxfp4", "nvfp4", "int8"}) {
    const Ran ran = scratch.run(b200 + type);
    EXPECT_EQ(ran.exit_code, 0) << type << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("arithmetic")) << type;
  }
  const Ran old =
      scratch.run("foretrace explain-kernel gemm 512x512x512 --machine 8xA100 -d float8");
  EXPECT_EQ(old.exit_code, 2);
  EXPECT_THAT(old.err, HasSubstr("has no float8 arithmetic"));
  const Ran unknown = scratch.run("foretrace explain-kernel gemm 512x512x512 -d float7");
  EXPECT_EQ(unknown.exit_code, 2);
}

TEST(ExplainKernel, OfAttentionSaysItsParts) {
  const Scratch scratch;
  const Ran prefill =
      scratch.run("foretrace explain-kernel attention_prefill 8192 --machine 8xB200 --kv-heads 8");
  EXPECT_EQ(prefill.exit_code, 0) << prefill.err;
  EXPECT_THAT(prefill.out, HasSubstr("pairs of a query and a key"));
  EXPECT_THAT(prefill.out, HasSubstr("attends.share"));
  const Ran decode = scratch.run(
      "foretrace explain-kernel attention_decode 32768 --machine 8xB200 --batch 64 --format json");
  const auto json = nlohmann::json::parse(decode.out);
  const auto& parts = json["parts"];
  EXPECT_GT(parts["memory"], parts["pairs"]) << "one query against a cache waits for memory";
  EXPECT_NEAR(parts["start"].get<double>() + parts["memory"].get<double>() +
                  parts["pairs"].get<double>() + parts["blocks"].get<double>(),
              json["seconds"].get<double>(), 1e-9);
  for (const char* const wrong : {"8192x64", "0", "-3"}) {
    EXPECT_EQ(
        scratch.run(std::string{"foretrace explain-kernel attention_prefill "} + wrong).exit_code,
        2);
  }
  EXPECT_EQ(scratch.run("foretrace explain-kernel attention_prefill 8192 -d float8").exit_code, 2);
}

TEST(ExplainKernel, WithoutATermSaysSoAndIsThatMuchShorter) {
  const Scratch scratch;
  const Ran ran =
      scratch.run("foretrace explain-kernel elementwise 100KiB --without term=small_array");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("note: without small_array"));
  EXPECT_THAT(ran.out, HasSubstr("without term=small_array"));
  EXPECT_THAT(ran.out, HasSubstr("no term beyond the core moves it"));
}

TEST(ExplainKernel, RefusesWhatIsNoKernelNoSizeAndNoTerm) {
  const Scratch scratch;
  for (const char* const wrong :
       {"explain-kernel convolution 4MiB", "explain-kernel reduction 64x64",
        "explain-kernel memset 0B", "explain-kernel elementwise 4MiB --arrays 4",
        "explain-kernel elementwise 4MiB --format csv",
        "explain-kernel gemm 64x64x64 --without term=small_aray",
        "simulate scenarios/examples/prefetch_two_streams.yaml --without small_array",
        "accuracy --terms nowhere"}) {
    const Ran ran = scratch.run(std::string{"foretrace "} + wrong);
    EXPECT_EQ(ran.exit_code, 2) << wrong;
    EXPECT_NE(ran.err, "") << wrong;
  }
}

}  // namespace
}  // namespace foretrace::test
