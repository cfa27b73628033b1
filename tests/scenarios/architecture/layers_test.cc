// Layers that differ: which have windows, experts and rotary positions, by each type's rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/architecture/configs.h"

namespace foretrace::training {
namespace {

using ::testing::HasSubstr;

/// A letter a layer: w window, c chunk, f full; capital where it has experts.
std::string kinds(const Architecture& model) {
  std::string text;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const Layer layer = model.layer(i);
    char letter = layer.window == 0 ? 'f' : layer.is_chunked ? 'c' : 'w';
    if (layer.has_experts) letter = static_cast<char>(letter - 'a' + 'A');
    text += letter;
  }
  return text;
}

std::string rotated(const Architecture& model) {
  std::string text;
  for (std::int64_t i = 0; i < model.layers; ++i) text += model.layer(i).rotates ? 'r' : '-';
  return text;
}

std::string kinds_of(const char* type, const std::string& keys) {
  const ReadConfig read = config(of_type(type, keys));
  EXPECT_TRUE(read.is_sound) << read.said;
  return kinds(read.model);
}

TEST(Windows, FollowEachTypesRule) {
  const std::string eight = R"("num_hidden_layers": 8)";
  EXPECT_EQ(kinds_of("mistral", eight), "wwwwwwww");
  EXPECT_EQ(kinds_of("gemma2", eight), "wfwfwfwf");
  EXPECT_EQ(kinds_of("gemma3_text", eight), "wwwwwfww");
  EXPECT_EQ(kinds_of("gemma3_text", eight + R"(, "sliding_window_pattern": 2)"), "wfwfwfwf");
  EXPECT_EQ(kinds_of("cohere2", eight), "wwwfwwwf");
  EXPECT_EQ(kinds_of("olmo3", eight), "wwwfwwwf");
  EXPECT_EQ(kinds_of("exaone4", eight + R"(, "sliding_window_pattern": "LLG")"), "wwfwwfww");
  EXPECT_EQ(kinds_of("gpt_oss", eight), "WFWFWFWF");
  EXPECT_EQ(
      kinds_of("gpt_neo", R"("num_layers": 4, "attention_types": [[["global", "local"], 2]])"),
      "fwfw");
}

TEST(Windows, OfQwenAreAskedForAndBeginBehindSomeLayers) {
  const std::string four =
      R"("num_hidden_layers": 4, "sliding_window": 1024, "max_window_layers": 3)";
  EXPECT_EQ(kinds_of("qwen2", four), "ffff");
  EXPECT_EQ(kinds_of("qwen2", four + R"(, "use_sliding_window": true)"), "fffw");
  EXPECT_EQ(kinds_of("qwen3", four + R"(, "use_sliding_window": true)"), "fffw");
  EXPECT_EQ(kinds_of("qwen3_moe", four + R"(, "use_sliding_window": true)"), "WWWW");
}

/// `yes` for each layer that has it, '-' for the others.
std::string layers_with(bool Layer::*trait, char yes, const char* type, const std::string& keys) {
  const ReadConfig read = config(of_type(type, R"("num_hidden_layers": 6)" + keys));
  EXPECT_TRUE(read.is_sound) << read.said;
  std::string text;
  for (std::int64_t i = 0; i < read.model.layers; ++i) {
    text += read.model.layer(i).*trait ? yes : '-';
  }
  return text;
}

TEST(LinearAttention, IsInAllLayersButEachFourthOrThoseThatAreListed) {
  const auto linear = [](const char* type, const std::string& keys) {
    return layers_with(&Layer::is_linear, 'l', type, keys);
  };
  EXPECT_EQ(linear("qwen3_next", ""), "lll-ll");
  EXPECT_EQ(linear("qwen3_5_text", R"(, "full_attention_interval": 2)"), "l-l-l-");
  const std::string listed =
      R"(, "layer_types": ["full_attention", "linear_attention", "full_attention"])";
  EXPECT_EQ(linear("qwen3_5_moe_text", listed), "-l--l-");
}

TEST(Indexers, AreInEachLayerOrInThoseThatOthersTakeTheirKeysFrom) {
  const auto indexed = [](const char* type, const std::string& keys) {
    return layers_with(&Layer::indexes, 'i', type, keys);
  };
  EXPECT_EQ(indexed("deepseek_v3", ""), "------");
  EXPECT_EQ(indexed("deepseek_v32", ""), "iiiiii");
  EXPECT_EQ(indexed("glm_moe_dsa", R"(, "index_topk_freq": 2)"), "ii-i-i");
  EXPECT_EQ(indexed("glm_moe_dsa", R"(, "index_topk_pattern": "FSSF")"), "i--ii-");
  EXPECT_EQ(indexed("glm_moe_dsa", R"(, "indexer_types": ["full", "shared"])"), "i-i-i-");
}

TEST(Windows, AreListedByLayerTypes) {
  EXPECT_EQ(kinds_of("qwen3", R"("num_hidden_layers": 3, "use_sliding_window": true, "layer_types":
      ["full_attention", "sliding_attention", "full_attention"])"),
            "fwf");
  EXPECT_THAT(config(of_type("qwen3", R"("layer_types": ["linear_attention"])")).said,
              HasSubstr("'layer_types' has 'linear_attention': not expanded"));
}

TEST(Windows, OfLlama4AreChunksInRotatedLayers) {
  const Architecture model =
      config(of_type("llama4_text", R"("num_hidden_layers": 8, "interleave_moe_layer_step": 2)"))
          .model;
  EXPECT_EQ(kinds(model), "cCcFcCcF");
  EXPECT_EQ(rotated(model), "rrr-rrr-");
}

TEST(ExpertLayers, FollowEachTypesRule) {
  const std::string six = R"("num_hidden_layers": 6)";
  EXPECT_EQ(kinds_of("deepseek_v3", six), "fffFFF");
  EXPECT_EQ(kinds_of("deepseek_v3", six + R"(, "first_k_dense_replace": 1, "moe_layer_freq": 2)"),
            "ffFfFf");
  EXPECT_EQ(kinds_of("deepseek", six + R"(, "hidden_size": 64, "num_attention_heads": 4,
      "intermediate_size": 128, "vocab_size": 100, "n_routed_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "first_k_dense_replace": 2)"),
            "ffFFFF");
  EXPECT_EQ(kinds_of("qwen3_moe", six + R"(, "decoder_sparse_step": 2)"), "fFfFfF");
  EXPECT_EQ(kinds_of("qwen2_moe", six + R"(, "mlp_only_layers": [0, 3])"), "fFFfFF");
  EXPECT_EQ(kinds_of("ernie4_5_moe", six + R"(, "moe_layer_end_index": 3)"), "fFFFff");
  EXPECT_EQ(kinds_of("llama4_text", six + R"(, "moe_layers": [5])"), "cccfcC");
}

TEST(ExpertLayers, AreNoneWhereAllAreLeftOut) {
  const Architecture model =
      config(of_type("qwen3_moe", R"("num_hidden_layers": 2, "mlp_only_layers": [0, 1])")).model;
  EXPECT_EQ(model.experts, 0);
  EXPECT_EQ(model.ffn, 6144) << "intermediate_size, not the experts' width";
}

TEST(RotatedLayers, AreNotAllOfThem) {
  const auto of = [](const char* type, const std::string& keys) {
    return rotated(config(of_type(type, keys)).model);
  };
  EXPECT_EQ(of("smollm3", R"("num_hidden_layers": 8)"), "rrr-rrr-");
  EXPECT_EQ(of("smollm3", R"("num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 0])"), "r-r-");
  EXPECT_EQ(of("cohere2", R"("num_hidden_layers": 8)"), "rrr-rrr-");
  EXPECT_EQ(of("exaone4", R"("num_hidden_layers": 4, "sliding_window": null)"), "rrrr");
  EXPECT_EQ(of("bloom", R"("n_layer": 2)"), "--");
  EXPECT_EQ(of("gpt2", R"("n_layer": 2)"), "--");
}

TEST(Attended, IsLessOfTheSquareWhereThereIsAWindow) {
  EXPECT_DOUBLE_EQ(attended({}, 1000), 500'000);
  EXPECT_DOUBLE_EQ(attended({.window = 1000}, 1000), 500'000);
  EXPECT_DOUBLE_EQ(attended({.window = 2000}, 1000), 500'000);
  // The first 100 tokens see what is before them, the others 100 each.
  EXPECT_DOUBLE_EQ(attended({.window = 100}, 1000), 5'000 + 900 * 100);
  EXPECT_DOUBLE_EQ(attended({.window = 100, .is_chunked = true}, 1000), 10 * 5'000);
  // Never more than without one, and growing with it.
  double before = 0;
  for (std::int64_t window = 1; window <= 1000; window += 37) {
    const double pairs = attended({.window = window}, 1000, 192);
    EXPECT_GE(pairs, before) << window;
    EXPECT_LE(pairs, attended({}, 1000, 192)) << window;
    before = pairs;
  }
}

TEST(Understood, NamesWhatDiffers) {
  EXPECT_EQ(understood(shipped_model("qwen3-32b")),
            "32.76 B parameters, 64 layers, hidden 5120, 64 heads of 128 (8 of keys), not tied, no "
            "window");
  EXPECT_EQ(understood(shipped_model("gpt-oss-20b")),
            "20.91 B parameters (4.187 B active), 24 layers, hidden 2880, 64 heads of 64 (8 of "
            "keys), 32 experts, 4 for a token, not tied, window of 128 in 12 of 24 layers");
  EXPECT_THAT(understood(shipped_model("deepseek-v3")),
              HasSubstr("128 heads of 192 (values 128, latent 512), 256 experts, 8 for a token and "
                        "a shared one 2048 wide, in 58 of 61 layers"));
}

}  // namespace
}  // namespace foretrace::training
