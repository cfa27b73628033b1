// foretrace accuracy --transfer: GPUs that are left out whole, on tables that are made here.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

const std::string kTableHead = "# a comment\ngpu,family,precision,m,n,k,time_us\n";

/// 60 products at 0.7 of the arithmetic of each GPU, some of them long.
std::string table_of(const std::string& gpu, double peak) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const double m = 2048 + 256 * i, n = 8192, k = 4096;
    text += fmt::format("{},gemm,bf16,{},{},{},{:.2f}\n", gpu, m, n, k,
                        2 * m * n * k / (0.7 * peak) * 1e6);
  }
  return text;
}

TEST(Transfer, JudgesEachGpuByRatiosOfTheOthers) {
  const Scratch scratch;
  scratch.write("t.csv", kTableHead + table_of("H100-80GB-SXM", 989.4e12) +
                             table_of("A100-80GB-SXM", 312e12) + "Arc,gemm,bf16,1,1,1,1\n");
  const Ran ran = scratch.run("foretrace accuracy --transfer t.csv --format json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  ASSERT_EQ(report["judged"].size(), 2u);
  for (const auto& one : report["judged"]) {
    EXPECT_EQ(one["rows"], 60);
    EXPECT_LT(one["median"], 0.3) << one.dump();
  }
  EXPECT_EQ(report["left_out"], nlohmann::json::array({"Arc"}));
}

/// 60 causal attentions of 32 heads at half of a GPU's arithmetic.
std::string attention_of(const std::string& gpu, double peak) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const double tokens = 4096 + 64 * i, flops = 4.0 * 32 * tokens * tokens / 2 * 128;
    text += fmt::format("{},attention_prefill,bf16,,,,1,32,32,128,{},0,{:.2f}\n", gpu, tokens,
                        flops / (0.5 * peak) * 1e6);
  }
  return text;
}

TEST(Transfer, JudgesAttentionTheSameWayAndSaysWhichTypesItCannotSay) {
  const Scratch scratch;
  scratch.write("t.csv",
                "gpu,family,precision,m,n,k,batch,heads,kv_heads,head_dim,seq,window,time_us\n"
                "H100-80GB-SXM,gemm,bf16,4096,4096,4096,,,,,,,200\n" +
                    attention_of("H100-80GB-SXM", 989.4e12) +
                    attention_of("A100-80GB-SXM", 312e12) +
                    "H100-80GB-SXM,attention_prefill,fp8,,,,1,32,32,128,4096,0,200\n");
  const Ran ran = scratch.run("foretrace accuracy --transfer t.csv --format json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto report = nlohmann::json::parse(ran.out);
  ASSERT_EQ(report["attention"].size(), 2u);
  for (const auto& one : report["attention"]) {
    EXPECT_EQ(one["precision"], "prefill bf16");
    EXPECT_EQ(one["rows"], 60);
    EXPECT_LT(one["median"], 0.25) << one.dump();
    EXPECT_LT(one["own_half_given_median"], 0.1) << one.dump();
  }
  EXPECT_EQ(report["attention_refused"], (nlohmann::json{{"prefill fp8", 1}}));
}

TEST(Transfer, LeavesOutRowsWhoseWeightsWereInTheCache) {
  const Scratch scratch;
  scratch.write("t.csv", kTableHead + table_of("H100-80GB-SXM", 989.4e12) +
                             "H100-80GB-SXM,gemm,bf16,1,65536,8192,20\n");
  const Ran ran = scratch.run("foretrace accuracy --transfer t.csv");
  EXPECT_THAT(ran.out, HasSubstr("1 rows, whose weights were in the cache")) << ran.err;
}

TEST(Transfer, SaysWhatATableLacks) {
  const Scratch scratch;
  scratch.write("t.csv", kTableHead + "Arc,gemm,bf16,1,1,1,1\n");
  const Ran none = scratch.run("foretrace accuracy --transfer t.csv");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no products of GPUs that are known"));
  scratch.write("u.csv", "gpu,family\nA100,gemm\n");
  const Ran lacks = scratch.run("foretrace accuracy --transfer u.csv");
  EXPECT_EQ(lacks.exit_code, 2);
  EXPECT_THAT(lacks.err, HasSubstr("precision"));
}

TEST(Transfer, RefusesSizesThatAreNone) {
  for (const char* const sizes :
       {"0,1,1", "1.5,8,8", "-8,8,8", "8,8,3000000000", "8,1e14,8", "8,nan,8"}) {
    const Scratch scratch;
    scratch.write("t.csv", kTableHead + "H100-80GB-SXM,gemm,bf16," + sizes + ",20\n");
    const Ran ran = scratch.run("foretrace accuracy --transfer t.csv");
    EXPECT_EQ(ran.exit_code, 2) << sizes;
    EXPECT_THAT(ran.err, HasSubstr("t.csv:3: ")) << sizes;
  }
}

TEST(MachineCommand, PrintsPartsSourcesAndWhatWasJudged) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace machine 8xL40S/pcie4+tcp-100g");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* const said :
       {"GPU L40S", "362 TFLOP/s", "NVIDIA L40S datasheet", "link pcie4", "network tcp-100g",
        "carried over from h200-nvswitch-8 by memory_bandwidth", "blind.products: 23 %"}) {
    EXPECT_THAT(ran.out, HasSubstr(said));
  }
  EXPECT_EQ(scratch.run("foretrace machine 8xL40").exit_code, 2);
}

/// A datasheet's facts, of a slot of this generation.
std::string sheet_of_pcie(int generation) {
  return "schema_version: 1\nsources: {s: {class: datasheet, text: t}}\nfacts:\n"
         "  capability: {value: 8.9, source: s}\n  sm_count: {value: 100, source: s}\n"
         "  memory: {value: 40 GB, source: s}\n  memory_bandwidth: {value: 900 GB/s, source: s}\n"
         "  bf16: {value: 300 TFLOP/s, source: s}\n  nvlinks: {value: 0, source: s}\n"
         "  pcie: {value: " +
         std::to_string(generation) + ", source: s}\n";
}

TEST(MachineCommand, WritesAFileFromFactsThatSimulatesAsOne) {
  const Scratch scratch;
  scratch.write("sheet.yaml", sheet_of_pcie(4));
  const Ran made = scratch.run(
      "foretrace machine new --gpu X1 --from sheet.yaml --count 4 --link pcie4 -o x1.yaml");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Ran ran = scratch.run("foretrace nccl-tests all_reduce -b 1M -g 4 --machine x1.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(scratch.run("foretrace machine new --gpu X1").exit_code, 2);
}

TEST(MachineCommand, SaysThatASlotIsOfPcie3To5) {
  const Scratch scratch;
  scratch.write("sheet.yaml", sheet_of_pcie(2));
  const Ran made = scratch.run(
      "foretrace machine new --gpu X2 --from sheet.yaml --count 4 --link pcie4 -o x2.yaml");
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_THAT(made.err, HasSubstr("pcie: '2' is not a count between 3 and 5"));
}

TEST(MachineCommand, WritesNothingThatNoCommandWouldRead) {
  const Scratch scratch;
  scratch.write("sheet.yaml",
                "schema_version: 1\nsources: {s: {class: datasheet, text: t}}\nfacts:\n"
                "  sm_count: {value: 0, source: s}\n  pcie: {value: 0, source: s}\n");
  const Ran made =
      scratch.run("foretrace machine new --gpu X1 --from sheet.yaml --link pcie4 -o x1.yaml");
  EXPECT_EQ(made.exit_code, 2) << made.err;
  EXPECT_THAT(made.err, HasSubstr("sheet.yaml: its facts make no machine"));
  EXPECT_THAT(made.err, HasSubstr("gpu.sm_count must be positive"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "x1.yaml"));
  const Ran lines = scratch.run(
      "foretrace machine new --gpu \"$(printf 'a\\nb')\" --from models/machines/gpus/L40S.yaml");
  EXPECT_EQ(lines.exit_code, 2) << lines.out;
  EXPECT_THAT(lines.err, HasSubstr("'name' is one line"));
}

}  // namespace
}  // namespace foretrace::test
