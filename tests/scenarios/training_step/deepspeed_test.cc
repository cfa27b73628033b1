// Megatron under DeepSpeed, and dropout: what is written, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::HasSubstr;

/// Tensor and data parallel stages of whole sequences, gradients in 16 bits.
TrainingStep deepspeed_step() {
  TrainingStep step = small_step();
  step.model.kv_heads = 8;
  step.passes = 4;
  step.tensor = step.data = step.pipeline = 2;
  step.loss_parallel = true;
  step.sharding = Sharding::Zero1;
  step.framework = Framework::MegatronDeepSpeed;
  step.float32_reduce = false;
  return step;
}

TEST(DeepSpeed, SendsOneTensorAfterTheOtherBehindItsSizes) {
  TrainingStep step = deepspeed_step();
  // Four micro-batches there, four gradients back; of what a stage was given by the other both join
  // the parts, and the first one those of what it gave; then the parameters of both.
  EXPECT_EQ(executed(step, "nccl_send"), 2u * (4 + 4));
  EXPECT_EQ(executed(step, "nccl_all_gather"), 4u + 2 * 4 + 2);
  EXPECT_GT(times(step, "size: 72B, type: bfloat16, dst"), 0u) << "nine numbers";
  EXPECT_EQ(times(step, "}}, {i"), 0u) << "no batch of two";
  step.tensor = 1;
  step.loss_parallel = false;
  EXPECT_EQ(executed(step, "nccl_send"), 4u + 4) << "a whole tensor says its size once";
  step.framework = Framework::Megatron;
  EXPECT_EQ(executed(step, "nccl_send"), 4u + 4);
}

TEST(DeepSpeed, AddsGradientsInTheirBucketsOrThoseOfEachMicroBatchToWideOnes) {
  TrainingStep step = deepspeed_step();
  const auto gradients = [&] {
    const Expansion expansion = expand(step);
    return static_cast<double>(expansion.memory[static_cast<std::size_t>(Part::Gradients)]);
  };
  const double narrow = gradients();
  EXPECT_GT(times(step, "{id: accumulate,"), 0u);
  EXPECT_EQ(times(step, "{id: add_gradient,"), 0u);
  EXPECT_EQ(times(step, "{id: mean_in_bucket,"), 2u) << "a stage";
  EXPECT_EQ(times(step, "{id: out_of_gathered,"), 2u);
  step.float32_reduce = true;
  EXPECT_EQ(times(step, "{id: accumulate,"), 0u);
  EXPECT_GT(times(step, "{id: add_gradient,"), 0u);
  EXPECT_EQ(times(step, "{id: add_gradient,"), times(step, "{id: widen_gradient,"));
  EXPECT_GT(times(step, "type: float32, async: true, work: bucket_0"), 0u);
  EXPECT_NEAR(gradients() / narrow, 3, 0.1) << "4 bytes of a parameter beside 2";
}

/// What is wrong with a step of two processes under DeepSpeed that says `rest`, too.
std::string deepspeed_problems(std::string_view rest) {
  return problems(scenario(fmt::format("\n  {}\n  batch: {{sequence: 128, passes: 4}}\n"
                                       "  framework: megatron-deepspeed\n  {}",
                                       kModel, rest),
                           2));
}

TEST(DeepSpeed, IsRefusedWhereItsEngineHasNone) {
  EXPECT_EQ(deepspeed_problems("parallel: {tensor: 2}"), "");
  EXPECT_THAT(deepspeed_problems("parallel: {pipeline: 2, schedule: gpipe}"),
              HasSubstr("a.yaml:8:37: error: DeepSpeed's pipeline engine has one schedule"));
  EXPECT_THAT(deepspeed_problems("parallel: {pipeline: 2, virtual: 2}"), HasSubstr("no 'virtual'"));
  EXPECT_THAT(deepspeed_problems("parallel: {tensor: 2, sequence: true}"),
              HasSubstr("whole sequences"));
  EXPECT_THAT(deepspeed_problems("sharding: fsdp"), HasSubstr("whole parameters only"));
}

TEST(DeepSpeed, HasNeitherContextParallelismNorFlashAttention) {
  EXPECT_EQ(deepspeed_problems("parallel: {context: 2}"),
            "a.yaml:8:23: error: Megatron-DeepSpeed of February 2022 has no context parallelism\n"
            "    parallel: {context: 2}\n                        ^\n"
            "  hint: 'context: 1', or 'framework: megatron-core'\n");
  EXPECT_THAT(deepspeed_problems("attention: flash"),
              HasSubstr("a.yaml:8:14: error: Megatron-DeepSpeed of February 2022 has no flash"));
  EXPECT_EQ(deepspeed_problems("attention: unfused"), "");
}

TEST(DeepSpeed, MultipliesAttentionUnlessAskedOtherwise) {
  const auto gemms = [](std::string_view rest) {
    const std::string text =
        scenario(fmt::format("{{{}, batch: {{sequence: 128}}, {}}}", kModel, rest), 2);
    const auto read = read_scenario(text, "a.yaml");
    return read ? count(read->program, "gemm") : 0;
  };
  const std::size_t unsaid = gemms("framework: megatron-deepspeed");
  EXPECT_EQ(unsaid, gemms("framework: megatron-deepspeed, attention: unfused"));
  EXPECT_GT(unsaid, gemms("framework: megatron"));
}

TEST(Dropout, IsAKernelEachWayAndAByteForEachElement) {
  TrainingStep step = small_step();
  step.model.kv_heads = 8;
  step.flash_attention = false;
  EXPECT_EQ(times(step, "dropout"), 0u);
  step.dropout = true;
  const std::int64_t tokens = step.tokens(), scores = 8 * tokens * tokens;
  const auto kernel = [](std::string_view id, std::int64_t bytes) {
    return fmt::format("{{id: {}, kernel: pointwise, size: {}B}}", id, bytes);
  };
  for (const std::string_view way : {"", "_backward"}) {
    EXPECT_EQ(times(step, kernel(fmt::format("attention_dropout{}", way), 5 * scores)), 4u) << way;
    EXPECT_EQ(times(step, kernel(fmt::format("dropout{}", way), 5 * tokens * 256)), 4u * 2) << way;
    EXPECT_EQ(times(step, fmt::format("{{id: embedding_dropout{},", way)), 1u) << way;
  }
  step.framework = Framework::Megatron;
  EXPECT_EQ(times(step, kernel("residual", 7 * tokens * 256)), 4u * 2) << "in one kernel";
  EXPECT_EQ(times(step, "{id: dropout,"), 0u);
  EXPECT_EQ(times(step, "{id: dropout_backward,"), 4u * 2);
  step.flash_attention = true;
  EXPECT_EQ(times(step, "attention_dropout"), 0u) << "inside the kernel";
}

}  // namespace
}  // namespace foretrace::training
