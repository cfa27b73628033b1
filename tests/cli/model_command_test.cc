// Models as people have them: a config.json beside a scenario, shipped ones by name, types that
// are no decoders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kModelStep =
    "schema_version: 1\nname: step\nprocesses: 8\ntraining_step:\n  model: {config: config.json}\n"
    "  batch: {sequence: 32768, micro: 1}\n  sharding: fsdp\n  recompute: full\n";

std::string mistral(const std::string& window) {
  return R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096,
      "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": )" +
         window + R"(, "tie_word_embeddings": false})";
}

TEST(ModelCommands, AWindowMakesALongStepShorterByWhatItLeavesOut) {
  const Scratch scratch;
  const auto seconds = [&](const std::string& window) {
    scratch.write("config.json", mistral(window));
    scratch.write("step.yaml", kModelStep);
    const Ran ran =
        scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 --one-of-each --format json");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("training_step").at("seconds").get<double>();
  };
  const double full = seconds("null"), windowed = seconds("4096");
  // Attention falls from 25.8 to 6.0 GFLOP a token beside 43.4 of the products.
  EXPECT_NEAR(windowed / full, (43.4 + 6.0) / (43.4 + 25.8), 0.05);
}

TEST(ModelCommands, SimulateCheckAndPlanSayHowAModelWasUnderstood) {
  const Scratch scratch;
  scratch.write("config.json", mistral("1024"));
  scratch.write("step.yaml", kModelStep);
  const std::string line =
      "model mistral: 7.242 B parameters, 32 layers, hidden 4096, 32 heads of 128 (8 of keys), not "
      "tied, window of 1024";
  EXPECT_THAT(scratch.run("foretrace simulate step.yaml -m h100-nvswitch-8 --one-of-each").out,
              HasSubstr(line));
  EXPECT_THAT(scratch.run("foretrace check step.yaml").out, HasSubstr(line));
  EXPECT_THAT(scratch
                  .run("foretrace plan config.json -m h100-nvswitch-8 --gpus 8 --keep tensor=1 "
                       "--keep pipeline=1 --keep micro=1 --keep sharding=fsdp --top 1")
                  .out,
              HasSubstr(line));
}

TEST(ModelCommands, PlanKnowsAShippedModelByName) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace plan qwen3-32b -m h100-nvswitch-8 --gpus 64 --keep tensor=8 --keep pipeline=1 "
      "--keep "
      "recompute=full --keep micro=1 --top 1 --global-batch 64");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("model qwen3-32b: 32.76 B parameters"));
}

TEST(ModelCommands, WarningsOfAConfigArePrintedOnce) {
  const Scratch scratch;
  scratch.write("config.json", R"({"model_type": "gemma2", "quantization_config": {"bits": 4}})");
  scratch.write("step.yaml", kModelStep);
  for (const char* command : {"foretrace simulate step.yaml -m h100-nvswitch-8 --one-of-each",
                              "foretrace check step.yaml"}) {
    const Ran ran = scratch.run(command);
    const std::size_t first = ran.err.find("'attn_logit_softcapping: 50.0' is not expanded");
    EXPECT_NE(first, std::string::npos) << command << ran.err;
    EXPECT_EQ(ran.err.find("'attn_logit_softcapping", first + 5), std::string::npos) << command;
    EXPECT_THAT(ran.err, HasSubstr("'quantization_config' is not expanded")) << command;
  }
}

TEST(ModelCommands, ATypeWithoutADecoderSaysHowToWriteItsSizes) {
  const Scratch scratch;
  scratch.write("config.json", R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 100})");
  scratch.write("step.yaml", kModelStep);
  const Ran ran = scratch.run("foretrace simulate step.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  const std::string in_place =
      "model: {style: gpt, layers: 2, hidden: 64, heads: 2, ffn: 128, vocab: 100}";
  EXPECT_THAT(ran.err, AllOf(HasSubstr("step.yaml:5"), HasSubstr("'bert' is an encoder"),
                             HasSubstr(in_place)));
  std::string step = kModelStep;
  const std::string config = "model: {config: config.json}";
  step.replace(step.find(config), config.size(), in_place);
  scratch.write("step.yaml", step.replace(step.find("32768"), 5, "128"));
  EXPECT_EQ(scratch.run("foretrace simulate step.yaml --one-of-each").exit_code, 0)
      << "what the hint says works";
}

TEST(ModelCommands, ListModelsSaysEachInALine) {
  const Scratch scratch;
  const Ran text = scratch.run("foretrace list models");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("\nqwen3-0.6b: 596 M parameters, 28 layers"),
                              HasSubstr("\ndeepseek-v3: 671 B parameters"), Not(HasSubstr("?"))));
  const auto names = nlohmann::json::parse(scratch.run("foretrace list models --format json").out);
  EXPECT_GE(names.size(), 60u);
}

}  // namespace
}  // namespace foretrace::test
