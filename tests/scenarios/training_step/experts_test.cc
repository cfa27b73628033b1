// Layers of experts: what they are worth, what they read as, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Four layers of eight experts, of which a token goes to two.
TrainingStep expert_step() {
  TrainingStep step = small_step();
  step.model.experts = 8;
  step.model.top_k = 2;
  return step;
}

std::string shipped(const char* model) {
  const auto read = read_training(
      scenario(fmt::format("{{model: {}, batch: {{sequence: 128}}}}", model)), "a.yaml");
  if (!read) return "no training step";
  return fmt::format("{} {}", parameter_count(read->step.model), read->step.model.experts);
}

TEST(Experts, CountAsInPublishedModels) {
  EXPECT_EQ(shipped("mixtral-8x7b"), "46702792704 8");
  EXPECT_EQ(shipped("mixtral-8x22b"), "140620634112 8");
  EXPECT_EQ(shipped("qwen3-30b-a3b"), "30532122624 128");
}

TEST(Experts, CountInFlopsAsOftenAsATokenGoesToThem) {
  TrainingStep step = expert_step();
  const double two = model_flops(step);
  step.model.experts = 16;
  // A router of twice the width is all that is more.
  EXPECT_DOUBLE_EQ(model_flops(step) - two, 128 * 6.0 * 4 * 256 * 8);
  step.model.top_k = 4;
  EXPECT_GT(model_flops(step), 1.5 * two);
}

TEST(Experts, AreOneGroupedProductOrALoop) {
  TrainingStep step = expert_step();
  // Each block: four of attention, the router, three of experts, forward and twice backward.
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 8 + 1));
  step.expert_products = ExpertProducts::Loop;
  EXPECT_EQ(executed(step, "gemm"), 3u * (4 * (5 + 8 * 3) + 1));
  step.recompute = Recompute::Full;
  EXPECT_EQ(executed(step, "gemm"), 3u * (4 * (5 + 8 * 3) + 1) + 4 * (5 + 8 * 3));
}

TEST(Experts, ExchangeRowsTwiceInEachDirection) {
  TrainingStep step = expert_step();
  step.data = 4;
  step.sharding = Sharding::Ddp;
  EXPECT_EQ(executed(step, "nccl_all_to_all"), 0u) << "every process has all";
  const std::int64_t alone = sum(expand(step).memory);
  step.expert = 4;
  EXPECT_EQ(executed(step, "nccl_all_to_all"), 4u * 4);
  EXPECT_LT(sum(expand(step).memory), alone);
  step.expert = 2;
  EXPECT_THAT(text_of(step), AllOf(HasSubstr("expert_parallel_1: {ranks: [2, 3]"),
                                   HasSubstr("expert_data_1: {ranks: [1, 3]")));
}

TEST(Experts, ReduceGradientsAmongThoseWhoHoldTheSame) {
  TrainingStep step = expert_step();
  step.data = 4;
  step.bucket_bytes = 1 << 30;
  step.sharding = Sharding::Ddp;
  EXPECT_EQ(executed(step, "nccl_all_reduce"), 2u + 2) << "experts have buckets of their own";
  step.expert = 4;
  EXPECT_EQ(executed(step, "nccl_all_reduce"), 2u) << "nobody else holds them";
  step.expert = 2;
  step.sharding = Sharding::Zero1;
  EXPECT_EQ(executed(step, "nccl_all_gather"), 2u);
  step.sharding = Sharding::Fsdp;
  EXPECT_EQ(executed(step, "nccl_all_gather"), 2u * (2 * 4) + 1);
  EXPECT_EQ(executed(step, "nccl_reduce_scatter"), 2u * 4 + 1);
  step.expert = 4;
  EXPECT_EQ(executed(step, "nccl_all_gather"), 2u * 4 + 1);
}

TEST(Experts, AskForCountsUnlessTheyHaveACapacity) {
  TrainingStep step = expert_step();
  EXPECT_EQ(executed(step, "stream_synchronize"), 4u);
  step.recompute = Recompute::Full;
  EXPECT_EQ(executed(step, "stream_synchronize"), 8u);
  step.has_capacity = true;
  EXPECT_EQ(executed(step, "stream_synchronize"), 0u);
  const std::int64_t even = sum(expand(step).memory);
  step.expert_load = 2;
  EXPECT_GT(sum(expand(step).memory), even);
}

TEST(Experts, SplitRowsAndWidthWithTensorParallel) {
  TrainingStep step = expert_step();
  step.tensor = 2;
  step.sequence_parallel = true;
  const std::uint64_t gathers = executed(step, "nccl_all_gather");
  step.model.experts = 0;
  EXPECT_EQ(gathers, executed(step, "nccl_all_gather")) << "there and back, as without experts";
  step.model = expert_step().model;
  step.model.shared_ffn = 512;
  EXPECT_GT(executed(step, "nccl_all_gather"), gathers);
  EXPECT_EQ(executed(step, "gemm"), 3u * (4 * (8 + 3) + 1));
}

constexpr std::string_view kExperts =
    "model: {layers: 4, hidden: 256, heads: 8, kv_heads: 2, ffn: 512, vocab: 1000, experts: 6, "
    "top_k: 7}";

TEST(ExpertsRefusal, NamesDegreesThatDoNotDivide) {
  EXPECT_THAT(
      problems(scenario(fmt::format("{{{}, batch: {{sequence: 128}}, parallel: {{tensor: 2, "
                                    "expert: 4}}}}",
                                    kExperts),
                        12)),
      AllOf(HasSubstr("6 experts do not split over 4 processes"),
            HasSubstr("'expert' may be 1, 2, 3, 6"),
            HasSubstr("6 data parallel ranks are not whole groups of 4"),
            HasSubstr("a token cannot go to 7 of 6 experts"),
            HasSubstr("with split sequences only")));
  EXPECT_THAT(
      problems(scenario(
          fmt::format("{{{}, batch: {{sequence: 1}}, parallel: {{expert: 2}}}}", kModel), 2)),
      HasSubstr("of which this model has none"));
}

TEST(ExpertsRefusal, SaysWhatALoadMayBe) {
  const auto with = [](const char* experts) {
    return problems(scenario(fmt::format(
        "{{model: {{layers: 1, hidden: 64, heads: 2, ffn: 64, vocab: 100, experts: 4, top_k: 1}}, "
        "batch: {{sequence: 8}}, experts: {}}}",
        experts)));
  };
  EXPECT_EQ(with("{load: 1.25, products: loop}"), "");
  EXPECT_THAT(with("{load: 0.5}"), HasSubstr("'0.5' is no number from 1 to 64"));
  EXPECT_THAT(with("{capacity: 2us}"), HasSubstr("is no number from 1 to 64"));
  EXPECT_THAT(with("{load: 1.1, capacity: 1.1}"), HasSubstr("either 'load' or 'capacity'"));
  EXPECT_THAT(with("{product: loop}"), HasSubstr("products"));
}

}  // namespace
}  // namespace foretrace::training
