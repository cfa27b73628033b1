// Models that are too large to be served, whatever their sizes come to in 64 bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"

namespace foretrace::serving {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_model(const std::string& sizes) {
  try {
    read_serving_scenario(
        fmt::format("schema_version: 1\nname: a\nserving:\n  {{model: {{{}}}, traffic: {{arrivals: "
                    "closed, concurrency: 1, prompt: {{mean: 10}}, output: {{mean: 3}}, "
                    "requests: 2}}}}\n",
                    sizes),
        "a.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "read";
}

TEST(ServingSizes, OfIterationsThatTakeAllMemoryAreRefused) {
  EXPECT_THAT(refusal_of_model("layers: 40962, hidden: 256, heads: 4, ffn: 512, vocab: 1000"),
              HasSubstr("a decoder of 40962 layers is not served"));
}

/// Counted in 64 bits, the first one's weights come to less than a GPU has.
TEST(ServingSizes, BeyondSixtyFourBitsAreRefused) {
  EXPECT_THAT(refusal_of_model("layers: 32, hidden: 134217728, heads: 1048576, kv_heads: 1, "
                               "ffn: 536870912, vocab: 100"),
              HasSubstr("8.07e+18 parameters"));
  EXPECT_THAT(refusal_of_model("layers: 2, hidden: 256, heads: 4, ffn: 512, vocab: 1000, "
                               "experts: 65537, top_k: 2"),
              HasSubstr("65537 experts; at most 65536"));
}

}  // namespace
}  // namespace foretrace::serving
