// Products whose buffers are too small, or one and the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;

TEST(BadProduct, MatrixLargerThanItsBuffer) {
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 512, n: 513, k: 512, a: x, b: x, c: y}")),
            "18:47 error: buffer 'x' is too small with 1048576 B for what is needed: "
            "it is 1050624\n"
            "18:53 error: buffer 'y' is too small with 1048576 B for what is needed: "
            "it is 1050624\n");
}

TEST(BadProduct, UnknownKeyGetsAllThatAreKnownHoweverMany) {
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 4, n: 4, k: 4, a: x, b: x, c: y, a_offset: 4B}")),
            "18:50 error: unknown key 'a_offset' in gemm | known here: id, stream, m, n, k, type, "
            "a, b, c, transpose_a, transpose_b, batch, beta, result, compute, scales\n");
}

TEST(BadProduct, MatricesOfABatchLargerThanTheirBuffer) {
  EXPECT_EQ(problems_of(scenario_with(
                "gemm: {m: 512, n: 512, k: 4, a: x, b: x, c: y, transpose_a: true, batch: 2}")),
            "18:51 error: buffer 'y' is too small with 1048576 B for what is needed: "
            "it is 2097152\n");
}

TEST(BadProduct, ProductIntoOneOfItsFactors) {
  const std::string why =
      ": cuBLAS may write c before it has read all of a and b | give 'c' a buffer of its own\n";
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 4, n: 4, k: 4, a: x, b: y, c: x}")),
            "18:47 error: 'c' is the same buffer as 'a'" + why);
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 4, n: 4, k: 4, a: x, b: y, c: y, batch: 2}")),
            "18:47 error: 'c' is the same buffer as 'b'" + why);
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 4, n: 4, k: 4, a: x, b: x, c: y, beta: 1}")), "");
}

TEST(BadProduct, NarrowTypesTakeTheBytesOfTheirNumbersAndScales) {
  const auto product = [](const char* more, int k) {
    return problems_of(scenario_with(
        fmt::format("gemm: {{m: 512, n: 64, k: {}, a: x, b: x, c: y, {}}}", k, more)));
  };
  EXPECT_EQ(product("type: float8_e4m3", 2048), "");
  EXPECT_NE(product("type: float8_e4m3", 2064), "");
  EXPECT_EQ(product("type: float4_e2m1, scales: mx", 3824), "") << "17 bytes for 32 numbers";
  EXPECT_EQ(product("type: float4_e2m1", 3824),
            "18:41 error: buffer 'x' is too small with 1048576 B for what is needed: "
            "it is 1101312\n")
      << "18 bytes with a scale for 16 of them";
}

TEST(BadProduct, TypesAndScalesThatDoNotGoTogether) {
  const auto with = [](const char* more) {
    return problems_of(
        scenario_with(fmt::format("gemm: {{m: 4, n: 4, k: 4, a: x, b: x, c: y, {}}}", more)));
  };
  EXPECT_EQ(problems_of(scenario_with("gemm: {m: 16, n: 4, k: 16, a: x, b: x, c: y, "
                                      "type: float8_e5m2, scales: row, result: float32}")),
            "");
  EXPECT_EQ(with("compute: tf32"), "");
  EXPECT_EQ(
      with("type: bfloat16, compute: tf32"),
      "18:75 error: bfloat16 is not multiplied in TF32 | compute: tf32 is for type: float32\n");
  EXPECT_EQ(
      with("type: float8_e4m3, scales: nv"),
      "18:77 error: float8_e4m3 has no scales of this kind: nv | float8: tensor, row, block or "
      "mx; float4_e2m1: nv or mx; other types have none\n");
  EXPECT_EQ(with("type: int8, result: float32"),
            "18:70 error: a product of int8 is no float32 | it is int32\n");
}

TEST(BadProduct, Float8OfOtherThanMultiplesOf16) {
  const auto with = [](const char* sizes) {
    return problems_of(scenario_with(fmt::format(
        "gemm: {{{}, a: x, b: x, c: y, type: float8_e4m3, transpose_a: true}}", sizes)));
  };
  EXPECT_EQ(with("m: 64, n: 17, k: 48"), "") << "tokens are as many as they are";
  EXPECT_EQ(with("m: 64, n: 64, k: 63"),
            "18:31 error: 'k' is 63: cuBLAS multiplies float8 by multiples of 16 | 48 or 64\n");
  EXPECT_EQ(with("m: 8, n: 64, k: 64"),
            "18:17 error: 'm' is 8: cuBLAS multiplies float8 by multiples of 16 | 16\n");
}

TEST(BadProduct, Float8WhoseSizeIsNoMultipleOf16InOneIteration) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 64KiB}, "
                        "y: {memory: device, size: 64KiB}}\n"
                        "threads:\n  main:\n    - repeat:\n        index: i\n        times: 4\n"
                        "        ops:\n          - gemm: {m: 16, n: 16, k: 16 + 16 * i + i / 3, "
                        "a: x, b: x, c: y, type: float8_e4m3}\n"),
            "10:37 error: 'k' is 65 for i = 3: cuBLAS multiplies float8 by multiples of 16 | 64 or "
            "80\n");
}

TEST(BadProduct, ProductThatTakesOneBufferTwiceInAnIteration) {
  const auto loop = [](const std::string& buffers) {
    return "schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 64B, count: 4}}\n"
           "threads:\n  main:\n    - repeat:\n        index: i\n        times: 1000000\n"
           "        ops:\n          - gemm: {m: 4, n: 4, k: 4, " +
           buffers + "}\n";
  };
  EXPECT_EQ(problems_of(loop("a: x(i % 2), b: x(3), c: x((i + 1) % 2)")), "");
  EXPECT_EQ(
      problems_of(loop("a: x(i % 2), b: x(i % 4), c: x((i + 2) % 3)")),
      "10:67 error: 'c' is the same buffer as 'a' for i = 4: cuBLAS may write c before it has "
      "read all of a and b | give 'c' a buffer of its own\n");
}

}  // namespace
}  // namespace foretrace
