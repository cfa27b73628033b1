// Models whose layers differ, and parts that not every model has: what their steps read as.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scenarios/base/text/data_directory.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The numbers behind `key` in the lines of a text that have `word`, loops once.
std::vector<std::int64_t> numbers(std::string_view text, std::string_view word,
                                  std::string_view key) {
  std::vector<std::int64_t> all;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find(word) == std::string_view::npos) continue;
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    all.push_back(std::atoll(std::string{line.substr(at + key.size())}.c_str()));
  }
  return all;
}

TrainingStep step_of(const std::string& text) {
  const auto read = read_training(text, "a.yaml");
  if (!read) throw UsageError{"no training step"};
  return read->step;
}

/// Shipped models that training steps expand: others are for `serving:` only.
std::vector<std::string> trained_models() {
  std::vector<std::string> names = shipped_models();
  std::erase_if(names, [](const std::string& name) {
    return name == "qwen3.5-397b-a17b" || name == "qwen3-next-80b-a3b" || name == "glm-5" ||
           name == "deepseek-v3.2";
  });
  return names;
}

/// A shipped model cut to some layers, on two GPUs whose gradients are reduced.
TrainingStep cut(const std::string& name, std::int64_t layers, std::string_view rest = "") {
  const auto file = data_directory() / "scenarios/architectures" / (name + ".json");
  return step_of(scenario(
      fmt::format("{{model: {{config: \"{}\", layers: {}}}, batch: {{sequence: 64}}, steps: 1{}}}",
                  file.string(), layers, rest),
      2));
}

TEST(EveryShippedModel, WithLinearAttentionOrAnIndexerIsRefusedInATrainingStep) {
  const auto refusal = [](const char* name) {
    try {
      cut(name, 4);
    } catch (const UsageError& error) {
      return std::string{error.what()};
    }
    return std::string{"expanded"};
  };
  EXPECT_THAT(refusal("qwen3-next-80b-a3b"),
              AllOf(HasSubstr("linear attention is not expanded in a training step"),
                    HasSubstr("'serving:' has it")));
  EXPECT_THAT(refusal("glm-5"), HasSubstr("whose keys an indexer chooses is not expanded"));
}

TEST(EveryShippedModel, ReducesAGradientOfEachParameter) {
  for (const std::string& name : trained_models()) {
    const TrainingStep step = cut(name, 6, ", sharding: ddp");
    const std::string text = text_of(step, Ranks::OneOfEach);
    std::int64_t bytes = 0;
    for (const std::int64_t size : numbers(text, "id: reduce", "size: ")) bytes += size;
    // A tied embedding's gradient is one; learned positions are all there.
    EXPECT_EQ(bytes, 2 * parameter_count(step.model)) << name;
  }
}

TEST(EveryShippedModel, HoldsItsParametersInMemory) {
  for (const std::string& name : trained_models()) {
    const TrainingStep step = cut(name, 6, ", sharding: ddp");
    const std::int64_t held =
        expand(step, Ranks::OneOfEach).memory[static_cast<std::size_t>(Part::Parameters)];
    // Experts and the rest are rounded up to 512 bytes each.
    EXPECT_NEAR(static_cast<double>(held), static_cast<double>(2 * parameter_count(step.model)),
                1024)
        << name;
  }
}

TEST(EveryShippedModel, IsWrittenAsAScenarioThatReadsTheSame) {
  std::size_t turn = 0;
  for (const std::string& name : trained_models()) {
    ++turn;
    std::size_t way = 0;
    for (const char* rest :
         {", sharding: fsdp", ", sharding: zero1, recompute: full", ", recompute: selective"}) {
      const Program made = expanded(cut(name, 4, rest), Ranks::OneOfEach);
      const std::string text = scenario_text(made);
      if (++way != 1 + turn % 3) continue;  // each in one way: reading takes longer
      const auto read = read_scenario(text, "a");
      ASSERT_TRUE(read) << name << rest;
      EXPECT_EQ(read->program.hash, made.hash) << name << rest;
    }
  }
}

/// Eight layers, each with a window of its own, so that attention says which one it is.
TrainingStep numbered_step() {
  TrainingStep step = small_step();
  step.sequence = 4096;
  step.model.layers = 8;
  for (std::int64_t i = 0; i < 8; ++i) {
    step.model.kinds.push_back({.window = 256 * (i + 1), .rotates = true});
  }
  return step;
}

/// The layers that each thread's forward pass has, "0,1,4,5;2,3,6,7".
std::string layers_of_threads(const TrainingStep& step) {
  std::map<std::int64_t, std::size_t> layer_of;
  TrainingStep alone = numbered_step();
  for (const std::int64_t flops : numbers(text_of(alone), "attention_forward", "flops: ")) {
    layer_of.try_emplace(flops, layer_of.size());
  }
  std::string text = text_of(step), said;
  std::size_t at = text.find("  rank_");
  while (at != std::string::npos) {
    const std::size_t next = text.find("  rank_", at + 1);
    std::set<std::size_t> layers;
    for (const std::int64_t flops :
         numbers(std::string_view{text}.substr(at, next - at), "attention_forward", "flops: ")) {
      layers.insert(layer_of.contains(flops) ? layer_of.at(flops) : 99);
    }
    said += fmt::format("{}{}", said.empty() ? "" : ";", fmt::join(layers, ","));
    at = next;
  }
  return said;
}

TEST(LayersThatDiffer, AreEachOnTheirPipelineStage) {
  TrainingStep step = numbered_step();
  step.pipeline = 2;
  step.passes = 4;
  EXPECT_EQ(layers_of_threads(step), "0,1,2,3;4,5,6,7");
  step.chunks = 2;
  EXPECT_EQ(layers_of_threads(step), "0,1,4,5;2,3,6,7") << "chunks of a stage lie apart";
  step.recompute = Recompute::Full;
  EXPECT_EQ(layers_of_threads(step), "0,1,4,5;2,3,6,7");
}

TEST(LayersThatDiffer, AreWhereTheEmbeddingCountsAsOne) {
  TrainingStep step = numbered_step();  // ten places of eight layers, an embedding and a loss
  step.framework = Framework::Megatron;
  step.pipeline = 5;
  step.passes = 5;
  ASSERT_TRUE(step.ends_are_layers());
  EXPECT_EQ(layers_of_threads(step), "0;1,2;3,4;5,6;7");
}

TEST(Windows, MakeAttentionAsMuchLess) {
  const auto flops = [](std::string_view window, std::string_view word) {
    const TrainingStep step = step_of(scenario(fmt::format(
        "{{model: {{layers: 1, hidden: 256, heads: 2, ffn: 512, vocab: 100{}}}, batch: {{sequence: "
        "8192}}, steps: 1}}",
        window)));
    return static_cast<double>(numbers(text_of(step), word, "flops: ").at(0));
  };
  for (const char* word : {"attention_forward", "attention_backward"}) {
    const double all = flops("", word);
    EXPECT_EQ(flops(", window: 8192", word), all);
    EXPECT_EQ(flops(", window: 100000", word), all);
    // 1024 of the mean 4096: exactly 0.234 of the pairs, with tiles 0.26 to 0.28.
    EXPECT_NEAR(flops(", window: 1024", word) / all, 0.27, 0.015) << word;
  }
}

TEST(Windows, AreSaidWhereTheyAreNotFollowed) {
  const std::string model =
      "model: {layers: 4, hidden: 256, heads: 8, ffn: 512, vocab: 1000, "
      "window: 32}, batch: {sequence: 128}";
  const auto said = [&](std::string_view rest, int processes) {
    const auto read = read_training(scenario(fmt::format("{{{}{}}}", model, rest), processes), "a");
    return render(read->warnings, "");
  };
  EXPECT_THAT(said("", 1), IsEmpty());
  EXPECT_THAT(said(", attention: unfused", 1), HasSubstr("windows save nothing"));
  EXPECT_THAT(said(", parallel: {context: 2}", 2), HasSubstr("windows are not followed"));
}

TEST(QueryKeyNorms, AreAKernelEachWayForBoth) {
  TrainingStep step = small_step();
  const auto count_norms = [&] { return times(step, "kernel: rms_norm,"); };
  const std::size_t before = count_norms();
  step.model.qk_norm = QkNorm::Head;
  EXPECT_EQ(count_norms(), before + 4 * 2);
}

TEST(LatentAttention, HasItsProductsAndNormsAndNoTensorParallelism) {
  const TrainingStep step = cut("deepseek-v3", 1);
  const std::string text = text_of(step, Ranks::OneOfEach);
  for (const char* id : {"query_down,", "query_up,", "keys_down,", "keys_up,", "output,"}) {
    EXPECT_NE(text.find(std::string{"id: "} + id), std::string::npos) << id;
  }
  EXPECT_EQ(text.find("id: value,"), std::string::npos);
  EXPECT_THAT(problems(scenario("{model: deepseek-v3, batch: {sequence: 64}, parallel: {tensor: "
                                "2, sequence: true}}",
                                2)),
              HasSubstr("latent attention is expanded without tensor parallelism"));
}

TEST(ParallelBranches, ShareANorm) {
  TrainingStep step = small_step();
  const std::size_t two = times(step, "kernel: rms_norm,");
  step.model.norms = 1;
  EXPECT_EQ(times(step, "kernel: rms_norm,"), two - 4);
  step.model.norms = 4;
  EXPECT_EQ(times(step, "kernel: rms_norm,"), two + 8);
}

TEST(NormsBehindBranches, NeedTheirInputAgainWhereLayersAreRecomputed) {
  TrainingStep step = small_step();
  step.recompute = Recompute::Full;
  const std::size_t without = count(program_of(step), "gemm");
  step.model.norms = 4;
  EXPECT_EQ(count(program_of(step), "gemm"), without + 4) << "the last product of each layer";
}

TEST(CappedLogits, AreThreeKernelsEachWay) {
  TrainingStep step = small_step();
  step.model.caps_logits = true;
  EXPECT_EQ(times(step, "id: cap_logits,"), 3u);
  EXPECT_EQ(times(step, "id: cap_logits_backward,"), 3u);
}

TEST(ModelWarnings, SayDropoutAndPositions) {
  const auto said = [](std::string_view rest) {
    const auto read = read_training(scenario(fmt::format("{{{}}}", rest)), "a.yaml");
    return render(read->warnings, "");
  };
  EXPECT_THAT(said("model: gpt2, batch: {sequence: 1024}"), IsEmpty());
  EXPECT_THAT(said("model: gpt2, batch: {sequence: 2048}"),
              HasSubstr("sequences of 2048 tokens, and 1024 learned positions: counted with 1024"));
  EXPECT_THAT(said("model: {style: gpt, layers: 1, hidden: 64, heads: 2, ffn: 64, vocab: 100}, "
                   "batch: {sequence: 2048}"),
              IsEmpty());
}

TEST(TrainingStepSizes, AreRefusedWhereTheyCannotBeExpanded) {
  const std::string model = "layers: 2, hidden: 64, heads: 2, kv_heads: 2, ffn: 64, vocab: 64";
  for (const char* large :
       {"experts: 1000000000, top_k: 2", "experts: 100000, top_k: 2",
        "experts: 65536, top_k: 2, shared_ffn: 1000000000", "positions: 1000000000, tied: true",
        "head_dim: 1000000000", "experts: 60000, top_k: 60000"}) {
    const std::string text =
        scenario(fmt::format("{{model: {{{}, {}}}, batch: {{sequence: 1000000}}}}", model, large));
    // Whatever it says: in no time, and in little memory.
    static_cast<void>(problems(text));
  }
  EXPECT_THAT(
      problems(scenario(fmt::format("{{model: {{{}, experts: 1000000000, top_k: 2}}, batch: "
                                    "{{sequence: 16}}}}",
                                    model))),
      HasSubstr("1000000000 experts; at most 65536 are expanded"));
}

}  // namespace
}  // namespace foretrace::training
