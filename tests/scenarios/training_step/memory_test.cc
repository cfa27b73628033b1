// Memory of a step without its text, and what a pipeline's last stage keeps.
#include <gtest/gtest.h>

#include "scenarios/training_step/expand.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

/// Steps of all kinds, each small.
std::vector<TrainingStep> many_steps() {
  std::vector<TrainingStep> steps;
  for (const std::int64_t pipeline : {1, 2, 4}) {
    for (const std::int64_t tensor : {1, 2}) {
      for (const Sharding sharding : {Sharding::Ddp, Sharding::Zero1, Sharding::Fsdp}) {
        for (const Framework framework :
             {Framework::PyTorch, Framework::Megatron, Framework::MegatronCore}) {
          for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
            TrainingStep step = small_step();
            step.pipeline = pipeline;
            step.tensor = tensor;
            step.sharding = sharding;
            step.framework = framework;
            step.recompute = recompute;
            step.data = 2;
            step.passes = 9;
            step.fused_loss = framework == Framework::MegatronCore || recompute == Recompute::Full;
            const bool is_expanded = framework == Framework::PyTorch || sharding != Sharding::Fsdp;
            if (!is_expanded || (sharding == Sharding::Fsdp && pipeline > 1)) continue;
            steps.push_back(step);
          }
        }
      }
    }
  }
  return steps;
}

TEST(PeakMemory, IsWhatTheExpansionSays) {
  auto steps = many_steps();
  ASSERT_GT(steps.size(), 50u);
  TrainingStep more = small_step();
  more.pipeline = more.chunks = 2;
  more.passes = 8;
  steps.push_back(more);
  more = small_step();
  more.context = 2;
  steps.push_back(more);
  more = small_step();
  more.model.experts = 4;
  more.model.top_k = 2;
  more.data = more.expert = 2;
  steps.push_back(more);
  for (const TrainingStep& step : steps) {
    EXPECT_EQ(peak_memory(step), expand(step, Ranks::OneOfEach).memory);
    EXPECT_EQ(peak_memory(step), expand(step, Ranks::All).memory);
  }
}

TEST(PeakMemory, GrowsByThePassesLogitsWhereThePipelineHandsThemOut) {
  const auto total = [](Framework framework, bool fused, bool outputs, std::int64_t passes) {
    TrainingStep step = small_step();
    step.pipeline = 2;
    step.model.vocab = 64'000;  // logits are most of it
    step.framework = framework;
    step.fused_loss = fused;
    step.return_outputs = outputs;
    step.passes = passes;
    return sum(peak_memory(step));
  };
  constexpr std::int64_t kLogits = 2 * 128 * 64'000;
  constexpr std::int64_t kTokens = 2 * 8 * 128;  // and labels
  for (const bool fused : {false, true}) {
    // The logits of all passes, and the one tensor that they become.
    EXPECT_EQ(
        total(Framework::PyTorch, fused, true, 64) - total(Framework::PyTorch, fused, true, 32),
        32 * (2 * kLogits + kTokens))
        << fused;
    EXPECT_EQ(
        total(Framework::PyTorch, fused, false, 64) - total(Framework::PyTorch, fused, false, 32),
        32 * kTokens);
  }
  EXPECT_EQ(
      total(Framework::Megatron, false, true, 64) - total(Framework::Megatron, false, true, 32),
      32 * kTokens)
      << "its last stage makes losses";
}

TEST(PeakMemory, HasOneJoinOfTheLogitsBehindAllPasses) {
  TrainingStep step = small_step();
  step.pipeline = 2;
  step.passes = 6;
  EXPECT_EQ(times(step, "join_outputs"), 1u);
  const std::string text = text_of(step);
  EXPECT_NE(text.find("id: join_outputs, kernel: pointwise, size: " +
                      std::to_string(2 * 6 * 2 * 128 * 1000) + "B"),
            std::string::npos);
  step.return_outputs = false;
  EXPECT_EQ(times(step, "join_outputs"), 0u);
}

TEST(PeakMemory, ReadsReturnOutputs) {
  const auto step = read_training_step(
      scenario("{model: {layers: 4, hidden: 256, heads: 8, kv_heads: 2, ffn: 512, vocab: 1000}, "
               "batch: {sequence: 128, passes: 4}, parallel: {pipeline: 2}, return_outputs: false}",
               2),
      "a.yaml");
  ASSERT_TRUE(step.has_value());
  EXPECT_FALSE(step->return_outputs);
  EXPECT_FALSE(step->hands_out_outputs());
}

}  // namespace
}  // namespace foretrace::training
