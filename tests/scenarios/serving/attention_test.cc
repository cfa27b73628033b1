// serving: what attention of networks that differ has to do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scenarios/program/program_walk.h"
#include "scenarios/read/scenario.h"
#include "scenarios/serving/grid.h"

namespace foretrace::serving {
namespace {

Serving served(const char* model, const char* engine, int tensor) {
  const std::string text = fmt::format(
      "schema_version: 1\nname: a\nserving:\n  model: {}\n  parallel: {{tensor: {}}}\n"
      "  engine: {{kind: {}}}\n"
      "  traffic: {{arrivals: closed, concurrency: 2, prompt: {{mean: 512}}, output: {{mean: "
      "512}}, "
      "requests: 2}}\n",
      model, tensor, engine);
  return read_serving_scenario(text, "a.yaml").value().serving;
}

TEST(ServingAttention, OfLatentKeysExpandsThoseOfPromptsAndSharesThoseOfDecodes) {
  const Serving serving = served("deepseek-v3", "vllm", 8);
  const training::Layer layer = serving.model.layer(0);
  const std::int64_t heads = 128 / 8, tokens = 100, pairs = 5050;
  EXPECT_EQ(chunk_attention(serving, layer, prefilling(tokens, 0)).flops,
            2 * pairs * heads * (192 + 128));
  EXPECT_EQ(decode_attention(serving, layer, decoding(4, 1000)).flops,
            2 * 4000 * heads * (576 + 512));
}

TEST(ServingAttention, WithAnIndexerGoesToTheKeysThatItChooses) {
  const Serving serving = served("glm-5", "sglang", 8);
  const training::Layer layer = serving.model.layer(0);
  const AttentionWork few = decode_attention(serving, layer, decoding(2, 2048));
  EXPECT_EQ(decode_attention(serving, layer, decoding(2, 100'000)).flops, few.flops);
  EXPECT_EQ(index_work(serving, layer, decoding(2, 100'000), true).flops,
            std::int64_t{2} * 200'000 * 32 * 128);
  EXPECT_EQ(index_work(serving, layer, decoding(2, 100'000), false).flops, 0) << "no prompt";
}

TEST(ServingAttention, ThatIsLinearTakesAsLongWhateverTheContext) {
  const Serving serving = served("qwen3-next-80b-a3b", "sglang", 4);
  const training::Layer linear = serving.model.layer(0);
  ASSERT_TRUE(linear.is_linear);
  EXPECT_EQ(decode_attention(serving, linear, decoding(2, 100'000)).flops, 0);
  std::map<std::string, int> counts;
  const Program program = iterations(serving, {decoding(2, 100)}, Program{}, {});
  for_each_op(program, [&](const HostThread&, const Op& op, Around) { ++counts[op.label]; });
  EXPECT_EQ(counts["update_states"], 36) << "of 48 layers";
  EXPECT_EQ(counts["decode"], 12);
}

}  // namespace
}  // namespace foretrace::serving
