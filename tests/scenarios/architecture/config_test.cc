// config.json: what each type's keys, defaults and nulls are worth. Parameter counts are those of
// transformers 5.24's own models of the same configuration, counted on torch's meta device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/scenarios/architecture/configs.h"
#include "tests/scenarios/architecture/counted.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConfigCount : public ::testing::TestWithParam<Counted> {};

TEST_P(ConfigCount, IsThatOfTransformersModel) {
  const Counted& counted = GetParam();
  const ReadConfig read = config(of_type(counted.type, counted.keys));
  ASSERT_TRUE(read.is_sound) << read.said;
  EXPECT_EQ(parameter_count(read.model), counted.parameters) << counted.type << counted.keys;
}

INSTANTIATE_TEST_SUITE_P(Types, ConfigCount, ::testing::ValuesIn(kCounted));

TEST(ConfigNull, IsAsAbsentWhereTheTypeHasNoDefault) {
  const std::string sizes = R"("n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257)";
  const ReadConfig with = config(of_type("gpt2", sizes + R"(, "n_inner": null)"));
  ASSERT_TRUE(with.is_sound) << with.said;
  EXPECT_EQ(with.model.ffn, 4 * 768);
  EXPECT_EQ(parameter_count(with.model), 124'439'808);
}

TEST(ConfigNull, IsNoneWhereTheTypeHasADefault) {
  EXPECT_EQ(config(of_type("mistral")).model.window, 4096) << "MistralConfig's default";
  EXPECT_EQ(config(of_type("mistral", R"("sliding_window": null)")).model.window, 0);
  EXPECT_EQ(config(of_type("mistral", R"("sliding_window": 0)")).model.window, 0);
  EXPECT_EQ(config(of_type("mistral")).model.kv_heads, 8);
  EXPECT_EQ(config(of_type("mistral", R"("num_key_value_heads": null)")).model.kv_heads, 32);
}

TEST(ConfigNull, IsAskedForByName) {
  const ReadConfig read = config(of_type("llama", R"("hidden_size": null)"));
  EXPECT_FALSE(read.is_sound);
  EXPECT_THAT(read.said, HasSubstr("config.json: there is no 'hidden_size'"));
  EXPECT_THAT(config(of_type("internlm2")).said, HasSubstr("there is no 'num_hidden_layers'"));
}

TEST(ConfigZero, IsNoneOfWhatMayBeAbsent) {
  const ReadConfig read = config(of_type(
      "qwen3_moe", R"("num_hidden_layers": 62, "hidden_size": 6144, "intermediate_size": 8192,
      "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 0, "num_experts": 160,
      "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128)"));
  ASSERT_TRUE(read.is_sound) << read.said;
  EXPECT_EQ(read.model.shared_ffn, 0);
  EXPECT_NEAR(static_cast<double>(parameter_count(read.model)), 480e9, 0.5e9);
  EXPECT_FALSE(config(of_type("llama", R"("num_hidden_layers": 0)")).is_sound);
}

TEST(ConfigValue, IsAWholeNumberUpToABillion) {
  for (const char* value :
       {"-1", "1.5", "\"32\"", "true", "[32]", "1e12", "10000000000000000000"}) {
    const ReadConfig read =
        config(of_type("llama", std::string{"\"num_hidden_layers\": "} + value));
    EXPECT_FALSE(read.is_sound) << value;
    EXPECT_THAT(read.said, HasSubstr("'num_hidden_layers' is")) << value;
  }
  EXPECT_EQ(config(of_type("llama", R"("num_hidden_layers": 4.0)")).model.layers, 4);
}

TEST(ConfigValue, OfTheHiddenSizeIsSharedEvenlyByTheHeads) {
  const ReadConfig read =
      config(of_type("llama", R"("hidden_size": 4100, "num_attention_heads": 32)"));
  EXPECT_TRUE(read.is_sound) << "Transformers' own defaults of glm4_moe are such";
  EXPECT_THAT(read.said,
              HasSubstr("a hidden size of 4100 is not shared evenly by 32 heads: each has 128"));
  EXPECT_THAT(
      config(of_type("llama", R"("hidden_size": 4100, "num_attention_heads": 32, "head_dim": 128)"))
          .said,
      Not(HasSubstr("shared evenly")));
}

TEST(ConfigText, IsReadAsPythonWritesIt) {
  // json.dump writes characters beyond 16 bits as two escapes, and NaN and Infinity without quotes.
  const ReadConfig read = config(of_type(
      "llama", R"("_name_or_path": "\ud83e\udd17 \"NaN\"", "a_b": NaN, "time": [0.0, -Infinity])"));
  EXPECT_TRUE(read.is_sound) << read.said;
  EXPECT_TRUE(config(of_type("llama", "\"" + std::string(5000, 'k') + "\": 1")).is_sound);
}

TEST(ConfigText, IsRefusedWhereItIsNoObject) {
  EXPECT_THAT(config("").said, HasSubstr("config.json: parse error"));
  EXPECT_THAT(config("{\"model_type\": \"llama\",}").said, HasSubstr("line 1, column 24"));
  EXPECT_THAT(config("[1]").said, HasSubstr("a config.json is an object"));
  const std::string deep(100'000, '[');
  EXPECT_THAT(config("{\"a\": " + deep).said, HasSubstr("nested more than 32 levels deep"));
  EXPECT_THAT(config("{\"model_type\": \"\xff\"}").said, HasSubstr("parse error"));
}

TEST(ConfigTies, ByTheTypesDefault) {
  for (const char* tied : {"gemma", "gemma2", "gpt2", "bloom", "falcon", "cohere", "smollm3"}) {
    EXPECT_TRUE(config(of_type(tied)).model.tied) << tied;
  }
  for (const char* untied : {"llama", "mistral", "qwen2", "qwen3", "phi3", "gpt_neox"}) {
    EXPECT_FALSE(config(of_type(untied)).model.tied) << untied;
    EXPECT_TRUE(config(of_type(untied, R"("tie_word_embeddings": true)")).model.tied) << untied;
  }
}

TEST(ConfigOverride, CutsAndGrowsAModelWhoseLayersDiffer) {
  const std::string listed =
      of_type("gemma3_text", R"("num_hidden_layers": 3, "sliding_window": 512, "layer_types":
      ["sliding_attention", "sliding_attention", "full_attention"])");
  const auto windows = [&](std::int64_t layers) {
    const Architecture model = config(listed, {.layers = layers}).model;
    std::string text;
    for (std::int64_t i = 0; i < model.layers; ++i) text += model.layer(i).window > 0 ? "w" : "f";
    return text;
  };
  EXPECT_EQ(windows(2), "ww");
  EXPECT_EQ(windows(7), "wwfwwfw");
}

TEST(ConfigParts, AreReadWhereTheyReadText) {
  const ReadConfig read = config(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 1152},
      "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                      "model_type": "gemma3_text", "sliding_window": 1024}})");
  ASSERT_TRUE(read.is_sound) << read.said;
  EXPECT_EQ(read.model.layers, 34);
  const ReadConfig old = config(R"({"model_type": "qwen2_vl", "hidden_size": 1536,
      "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
      "num_key_value_heads": 2, "vision_config": {"depth": 32}})");
  EXPECT_TRUE(old.is_sound) << old.said;
  EXPECT_EQ(old.model.layers, 28) << "whose text part has no name";
  EXPECT_THAT(read.said, HasSubstr("the 'gemma3_text' that reads text is expanded"));
}

TEST(ConfigParts, TakeTheHeadFromTheWholeModel) {
  const auto tied = [](const char* whole) {
    return config(fmt::format(R"({{"model_type": "qwen3_vl_moe", {}
      "text_config": {{"model_type": "qwen3_vl_moe_text"}}}})",
                              whole))
        .model.tied;
  };
  EXPECT_TRUE(tied("")) << "the part's default";
  EXPECT_FALSE(tied(R"("tie_word_embeddings": false,)"));
}

TEST(ConfigWarning, NamesWhatIsNotExpanded) {
  const ReadConfig read = config(of_type("llama", R"("quantization_config": {"quant_method": "fp8"},
      "num_nextn_predict_layers": 1, "embedding_multiplier": 12, "hidden_act": "gelu_new",
      "frobnicate": 3, "another": false, "third": null, "torch_dtype": "bfloat16")"));
  EXPECT_TRUE(read.is_sound) << read.said;
  EXPECT_THAT(read.said, AllOf(HasSubstr("'quantization_config' (fp8) is not expanded"),
                               HasSubstr("'num_nextn_predict_layers: 1' is not expanded"),
                               HasSubstr("'embedding_multiplier: 12' is not expanded"),
                               HasSubstr("activation 'gelu_new' is counted as one kernel"),
                               HasSubstr("nothing is made of 'frobnicate'"),
                               Not(HasSubstr("another")), Not(HasSubstr("third"))));
}

TEST(ConfigWarning, IsNotOfWhatChangesNoWork) {
  const ReadConfig read = config(of_type("gpt_neox", R"("use_parallel_residual": true)"));
  EXPECT_TRUE(read.is_sound);
  EXPECT_THAT(read.said, Not(HasSubstr("use_parallel_residual")));
}

TEST(ConfigWarning, IsOfATypesDefaultToo) {
  EXPECT_THAT(config(of_type("gemma2")).said, HasSubstr("'attn_logit_softcapping: 50.0' is not"));
  EXPECT_THAT(config(of_type("gemma2", R"("attn_logit_softcapping": null)")).said, IsEmpty());
  EXPECT_THAT(config(of_type("granite", R"("residual_multiplier": 1.0)")).said, IsEmpty());
}

TEST(ConfigWarning, IsNotOfAKeyThatChangesNothing) {
  EXPECT_THAT(config(of_type("opt", R"("word_embed_proj_dim": 768)")).said, IsEmpty());
  EXPECT_THAT(config(of_type("opt", R"("word_embed_proj_dim": 512)")).said,
              HasSubstr("'word_embed_proj_dim: 512' is not expanded"));
}

TEST(ConfigWarning, IsOfAWindowThatTransformersDoesNotFollow) {
  const ReadConfig read = config(of_type("llama", R"("sliding_window": 4096)"));
  EXPECT_EQ(read.model.window, 0);
  EXPECT_THAT(read.said, HasSubstr("'sliding_window' is not followed"));
}

TEST(ConfigRefusal, WritesTheSizesInPlace) {
  const ReadConfig bert = config(
      of_type("bert", R"("num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
      "intermediate_size": 3072, "vocab_size": 30522, "hidden_act": "gelu")"));
  EXPECT_FALSE(bert.is_sound);
  EXPECT_THAT(bert.said,
              AllOf(HasSubstr("'bert' is an encoder: its attention has no mask"),
                    HasSubstr("model: {style: gpt, layers: 12, hidden: 768, heads: 12, ffn: 3072, "
                              "vocab: 30522}")));
  const ReadConfig t5 = config(of_type("t5", R"("num_layers": 12, "d_model": 768, "num_heads": 12,
      "d_ff": 3072, "vocab_size": 32128)"));
  EXPECT_THAT(t5.said, AllOf(HasSubstr("an encoder and a decoder"),
                             HasSubstr("layers: 12, hidden: 768, heads: 12, ffn: 3072")));
  const ReadConfig mamba = config(of_type("mamba", R"("num_hidden_layers": 48)"));
  EXPECT_THAT(mamba.said, AllOf(HasSubstr("a state-space model"), HasSubstr("layers: 48"),
                                HasSubstr("heads: ?")));
  EXPECT_THAT(config(of_type("qwen4")).said, HasSubstr("did you mean 'qwen"));
  EXPECT_THAT(config("{}").said, HasSubstr("it says no 'model_type'"));
  EXPECT_LT(config(of_type(std::string(100'000, 'x').c_str())).said.size(), 1'000U);
}

TEST(ShippedModels, AreSoundAndAsLargeAsTheyAreNamed) {
  for (const auto& [name, billions] : std::vector<std::pair<const char*, double>>{
           {"qwen3-0.6b", 0.596},       {"qwen3-1.7b", 1.72},
           {"qwen3-4b", 4.02},          {"qwen3-8b", 8.19},
           {"qwen3-14b", 14.8},         {"qwen3-32b", 32.8},
           {"qwen3-30b-a3b", 30.5},     {"qwen3-235b-a22b", 235},
           {"llama3.2-1b", 1.24},       {"llama3.2-3b", 3.21},
           {"llama3.1-8b", 8.03},       {"llama3.3-70b", 70.6},
           {"llama3.1-405b", 405.9},    {"llama3-405b", 405.9},
           {"mistral-7b", 7.24},        {"mistral-nemo-12b", 12.2},
           {"mistral-small-24b", 23.6}, {"mixtral-8x7b", 46.7},
           {"gemma2-2b", 2.61},         {"gemma2-9b", 9.24},
           {"gemma2-27b", 27.2},        {"gemma3-1b", 1.0},
           {"gemma3-27b", 27.0},        {"phi2", 2.78},
           {"phi3-mini", 3.82},         {"phi4", 14.7},
           {"phi4-mini", 3.84},         {"phi3.5-moe", 41.9},
           {"gpt-oss-20b", 20.9},       {"gpt-oss-120b", 116.8},
           {"deepseek-v2-lite", 15.7},  {"deepseek-v2", 235.7},
           {"deepseek-v3", 671},        {"kimi-k2", 1026},
           {"llama4-scout", 107.8},     {"olmo2-7b", 7.3},
           {"olmo2-32b", 32.2},         {"qwen2.5-0.5b", 0.494},
           {"qwen2.5-7b", 7.62},        {"qwen2.5-72b", 72.7},
           {"smollm3-3b", 3.08},        {"glm-4.5-air", 106.9}}) {
    const double count = static_cast<double>(parameter_count(shipped_model(name)));
    EXPECT_NEAR(count, billions * 1e9, 0.01 * billions * 1e9) << name;
  }
  for (const std::string& name : shipped_models()) EXPECT_NO_THROW(shipped_model(name)) << name;
}

TEST(ActiveParameters, AreThoseThatATokenGoesThrough) {
  const auto active = [](const char* name) {
    return static_cast<double>(active_parameters(shipped_model(name))) * 1e-9;
  };
  EXPECT_NEAR(active("qwen3-30b-a3b"), 3.3, 0.1);
  EXPECT_NEAR(active("gpt-oss-20b"), 3.61 + 0.579, 0.01) << "OpenAI leaves the embedding out";
  EXPECT_NEAR(active("deepseek-v3"), 37.5, 0.5);
  EXPECT_NEAR(active("mixtral-8x7b"), 12.9, 0.1);
  EXPECT_EQ(active_parameters(shipped_model("llama3-8b")), 8'030'261'248);
}

}  // namespace
}  // namespace foretrace::training
