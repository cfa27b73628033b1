// Products whose buffers are too small, or one and the same.
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
            "a, b, c, transpose_a, transpose_b, batch, beta\n");
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
