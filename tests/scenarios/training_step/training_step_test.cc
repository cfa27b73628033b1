// training_step: what a description is worth, and what it reads as.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParameterCount, IsThatOfPublishedModels) {
  // Llama 3 8B has 8,030,261,248 parameters, GPT-2 124,439,808.
  EXPECT_EQ(parameter_count(llama(32, 4096, 32, 8, 14336, 128256)), 8'030'261'248);
  const Architecture gpt2{.name = "gpt2",
                          .layers = 12,
                          .hidden = 768,
                          .heads = 12,
                          .kv_heads = 12,
                          .head_dim = 64,
                          .ffn = 3072,
                          .vocab = 50257,
                          .positions = 1024,
                          .gated = false,
                          .rms_norm = false,
                          .biases = true,
                          .joined_qkv = true,
                          .tied = true};
  EXPECT_EQ(parameter_count(gpt2), 124'439'808);
}

TEST(ModelFlops, AreSixForEachWeightAndTokenAndHalfOfAttentionsSquare) {
  const TrainingStep step = small_step();
  // Weights in products: 4 * (256 * (2 * 256 + 2 * 64) + 3 * 256 * 512) + 256 * 1000 = 2,484,224.
  // Attention: 3 * 2 * 4 layers * 256 * 128 for each token.
  EXPECT_DOUBLE_EQ(model_flops(step), 128 * (6.0 * 2'484'224 + 6.0 * 4 * 256 * 128));
}

TEST(TrainingStepExpansion, HasEveryProductForwardAndTwiceBackward) {
  const Program program = program_of(small_step());
  EXPECT_EQ(count(program, "gemm"), 3u * (4 * 7 + 1));
  EXPECT_EQ(count(program, "nccl_all_reduce"), 0u);
}

TEST(TrainingStepExpansion, RunsForwardAgainWhereBlocksAreRecomputed) {
  TrainingStep step = small_step();
  step.recompute = Recompute::Full;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 7 + 1) + 4 * 6)
      << "the last product of a block is not needed again";
  const auto collectives = [&step](Recompute recompute) {
    TrainingStep split = step;
    split.tensor = 2;
    split.recompute = recompute;
    return count(program_of(split), "nccl_all_reduce");
  };
  EXPECT_EQ(collectives(Recompute::Full) - collectives(Recompute::None), 4u)
      << "one for each of four layers: nor is the sum behind that product";
  step.recompute = Recompute::Selective;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 7 + 1)) << "only attention runs again";
}

TEST(TrainingStepExpansion, RunsWholeBlocksAgainAndReducesOnceBehindThemAsMegatron) {
  TrainingStep step = small_step();
  step.framework = Framework::Megatron;
  step.recompute = Recompute::Full;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 7 + 1) + 4 * 7);
  step.data = 2;
  step.sharding = Sharding::Ddp;
  step.bucket_bytes = 1 << 20;
  EXPECT_EQ(count(program_of(step), "nccl_all_reduce"), 1u);
}

TEST(TrainingStepExpansion, SendsAPartForEachTensorParallelRankAsMegatron) {
  TrainingStep step = small_step();
  step.tensor = step.pipeline = 2;
  step.passes = 4;
  step.loss_parallel = true;
  EXPECT_EQ(executed(step, "nccl_all_gather"), 0u);
  step.framework = Framework::Megatron;
  EXPECT_EQ(executed(step, "nccl_send"), 8u);
  EXPECT_EQ(executed(step, "nccl_all_gather"), 8u) << "what came is joined";
}

TEST(TrainingStepExpansion, HasFourProductsMoreBackwardWithoutAKernelForAttention) {
  TrainingStep step = small_step();
  step.flash_attention = false;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 7 + 1) + 4 * (2 + 4));
  step.recompute = Recompute::Selective;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 7 + 1) + 4 * (2 + 2 + 4));
}

TEST(TrainingStepExpansion, GivesTheFirstStagesALayerMoreAsMegatron) {
  TrainingStep step = small_step();
  step.framework = Framework::Megatron;
  step.pipeline = 3;
  step.passes = 4;
  // Of four layers two, one and one.
  EXPECT_EQ(executed(step, "gemm"), 4u * 3 * (4 * 7 + 1));
}

TEST(TrainingStepExpansion, ReducesInBucketsAndWaitsForAll) {
  TrainingStep step = small_step();
  step.data = 2;
  step.sharding = Sharding::Ddp;
  step.bucket_bytes = 1 << 20;
  const Program one = program_of(step);
  // 2 bytes for each of 2,997,504 parameters, in buckets that the last gradient overfills.
  EXPECT_GE(count(one, "nccl_all_reduce"), 4u);
  EXPECT_LE(count(one, "nccl_all_reduce"), 6u);
  step.bucket_bytes = 1 << 30;
  EXPECT_EQ(count(program_of(step), "nccl_all_reduce"), 2u) << "the first one is small";
}

TEST(TrainingStepExpansion, HasLargerBucketsForMoreReplicasAsMegatronCore) {
  TrainingStep step = small_step();
  step.framework = Framework::MegatronCore;
  step.model = llama(4, 4096, 32, 8, 14336, 1000);
  step.sharding = Sharding::Zero1;
  const auto buckets = [&](std::int64_t replicas) {
    step.data = replicas;
    return count(program_of(step), "nccl_reduce_scatter");
  };
  // 4 times 218 million parameters; products of up to 117 million.
  EXPECT_EQ(buckets(40), buckets(2)) << "40 million";
  EXPECT_GE(buckets(2), 8u);
  EXPECT_LE(buckets(400), 3u) << "400 million";
}

TEST(TrainingStepExpansion, GathersEachGroupTwiceAndScattersItOnceWithFsdp) {
  TrainingStep step = small_step();
  step.data = 2;
  step.sharding = Sharding::Fsdp;
  const Program program = program_of(step);
  EXPECT_EQ(count(program, "nccl_all_gather"), 2u * 4 + 1) << "the rest stays whole";
  EXPECT_EQ(count(program, "nccl_reduce_scatter"), 5u);
  step.reshard = false;
  EXPECT_EQ(count(program_of(step), "nccl_all_gather"), 5u);
}

TEST(TrainingStepExpansion, HasMegatronsCollectivesWithTensorParallel) {
  TrainingStep step = small_step();
  step.tensor = 2;
  // Embedding, two for each layer; backward one for each of five split inputs, and the head's.
  EXPECT_EQ(count(program_of(step), "nccl_all_reduce"), 1u + 4 * (2 + 5) + 1);
  step.sequence_parallel = true;
  const Program split = program_of(step);
  EXPECT_EQ(count(split, "nccl_all_gather"), 4u * 2 + 2 + 4 * 2 + 1);
  EXPECT_EQ(count(split, "nccl_reduce_scatter"), 1u + 4 * 2 + 1 + 4 * 2);
}

TEST(TrainingStepExpansion, SendsEachMicroBatchOnceInBothDirections) {
  TrainingStep step = small_step();
  step.pipeline = 2;
  step.passes = 4;
  EXPECT_EQ(executed(step, "nccl_send"), 8u);
  EXPECT_EQ(executed(step, "nccl_recv"), 8u);
  step.schedule = Schedule::GPipe;
  EXPECT_EQ(executed(step, "nccl_send"), 8u);
}

TEST(TrainingStepMemory, HasMomentsTwiceAndLessWithShards) {
  TrainingStep step = small_step();
  const auto of = [](const Expansion& expansion, Part part) {
    return expansion.memory[static_cast<std::size_t>(part)];
  };
  const Expansion alone = expand(step);
  EXPECT_EQ(of(alone, Part::Optimizer), 2 * of(alone, Part::Parameters));
  step.data = 4;
  step.sharding = Sharding::Fsdp;
  EXPECT_NEAR(static_cast<double>(of(expand(step), Part::Optimizer)),
              static_cast<double>(of(alone, Part::Optimizer)) / 4, 4096);
}

TEST(TrainingStepMemory, GoesBackToWhatLivesBetweenSteps) {
  Memory memory;
  const auto first = memory.allocate(Part::Activations, 1000);
  memory.free(first);
  const auto second = memory.allocate(Part::Temporary, 100);
  EXPECT_EQ(sum(memory.now()), 512) << "rounded as the caching allocator does";
  EXPECT_EQ(sum(memory.peak()), 1024);
  memory.free(second);
  EXPECT_EQ(sum(memory.now()), 0);
}

TEST(TrainingStepMemory, IsSmallerWithRecomputation) {
  TrainingStep step = small_step();
  step.micro_batch = 8;
  const auto activations = [&](Recompute recompute) {
    step.recompute = recompute;
    return sum(expand(step).memory);
  };
  EXPECT_GT(activations(Recompute::None), activations(Recompute::Selective));
  EXPECT_GT(activations(Recompute::Selective), activations(Recompute::Full));
}

TEST(TrainingStepExpansion, KeepsLogitsInBfloat16WithAFusedLoss) {
  TrainingStep step = small_step();
  step.model.vocab = 200'000;  // so that the loss is where most memory is needed
  const std::int64_t separate = sum(expand(step).memory);
  const std::size_t kernels = count(program_of(step), "library_kernel");
  step.fused_loss = true;
  EXPECT_EQ(kernels - count(program_of(step), "library_kernel"), 5u)
      << "widened, softmax, loss, cleared, its and softmax's gradient, narrowed; or one each way";
  EXPECT_LT(sum(expand(step).memory), separate);
}

TEST(TrainingStepExpansion, CopiesNothingOutOfFlatParameters) {
  TrainingStep step = small_step();
  step.data = 2;
  step.sharding = Sharding::Fsdp;
  const std::size_t kernels = count(program_of(step), "library_kernel");
  step.flat_parameters = true;
  EXPECT_EQ(kernels - count(program_of(step), "library_kernel"), 2u * 4 + 1)
      << "each block is gathered twice, the rest once";
}

TEST(TrainingStepExpansion, HoldsNoWholeGradientsWhereEveryPassReducesThem) {
  TrainingStep step = small_step();
  step.data = 2;
  step.passes = 4;
  step.sharding = Sharding::Fsdp;
  const std::int64_t held = expand(step).memory[static_cast<std::size_t>(Part::Gradients)];
  step.reduce_every_pass = true;
  EXPECT_LT(expand(step).memory[static_cast<std::size_t>(Part::Gradients)], held / 2);
}

TEST(TrainingStepReading, TakesTheFormsOfFsdpAndTheLoss) {
  const auto text = scenario(
      fmt::format("{{{}, batch: {{sequence: 128, passes: 2}}, sharding: fsdp, loss: fused, fsdp: "
                  "{{flat: true, reduce_every_pass: true}}}}",
                  kModel),
      2);
  const auto read = read_training(text, "a.yaml");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->step.flat_parameters && read->step.fused_loss && read->step.reduce_every_pass);
}

TEST(TrainingStepPasses, AreALoopThatRunsAsOftenAsThereAreOfThem) {
  TrainingStep step = small_step();
  for (const auto schedule : {Schedule::OneForwardOneBackward, Schedule::GPipe}) {
    for (const std::int64_t pipeline : {1, 2, 4}) {
      step.schedule = schedule;
      step.pipeline = pipeline;
      step.model.tied = pipeline == 2;
      std::vector<std::uint64_t> operations;
      std::vector<std::int64_t> memory;
      for (step.passes = 6; step.passes < 11; ++step.passes) {
        operations.push_back(executed(step));
        memory.push_back(sum(expand(step).memory));
      }
      for (std::size_t i = 2; i < operations.size(); ++i) {
        EXPECT_EQ(operations[i] - operations[i - 1], operations[1] - operations[0]) << pipeline;
        EXPECT_GE(memory[i], memory[i - 1]) << pipeline;
      }
      EXPECT_EQ(memory[4] - memory[3], memory[3] - memory[2]) << pipeline;
      EXPECT_GT(operations[1], operations[0]);
    }
  }
}

TEST(TrainingStepText, ReadsAsTheProgramThatItIsWrittenOf) {
  TrainingStep step = small_step();
  step.model.layers = 2;
  step.tensor = step.pipeline = step.data = 2;
  step.passes = 4;
  for (const Sharding sharding : {Sharding::Ddp, Sharding::Zero2, Sharding::Fsdp}) {
    step.sharding = sharding;
    if (sharding == Sharding::Fsdp) step.pipeline = 1;
    const Program made = expanded(step);
    const std::string text = scenario_text(made);
    const auto read = read_scenario(text, "a.yaml");
    ASSERT_TRUE(read) << render(read.error(), text);
    EXPECT_EQ(made.hash, read->program.hash);
    EXPECT_EQ(canonical_text(made), canonical_text(read->program));
    EXPECT_EQ(made.op_count, read->program.op_count);
    EXPECT_EQ(scenario_text(read->program), text);
  }
}

TEST(TrainingStepExpansion, SplitsBiasesAndAddsATiedEmbeddingOfTwoStages) {
  TrainingStep step = small_step();
  step.model.gated = step.model.rms_norm = false;
  step.model.biases = step.model.joined_qkv = true;
  step.model.positions = step.sequence;
  step.tensor = 2;
  EXPECT_EQ(count(program_of(step), "gemm"), 3u * (4 * 4 + 1));
  step.pipeline = 2;
  step.passes = 2;
  const std::uint64_t apart = executed(step, "nccl_all_reduce");
  step.model.tied = true;
  EXPECT_EQ(executed(step, "nccl_all_reduce"), apart + 2) << "on each of the two stages";
}

TEST(TrainingStepText, IsAScenarioThatReadsTheSame) {
  const std::string text =
      scenario(fmt::format("{{{}, batch: {{sequence: 128}}, sharding: fsdp}}", kModel), 2);
  const auto expanded = read_training(text, "a.yaml");
  ASSERT_TRUE(expanded);
  const std::string text_of_it = scenario_text(expanded->expansion.program);
  const auto printed = read_scenario(text_of_it, "b.yaml");
  const auto direct = read_scenario(text, "a.yaml");
  ASSERT_TRUE(printed && direct);
  EXPECT_EQ(printed->program.hash, direct->program.hash);
  EXPECT_FALSE(read_training(text_of_it, "b.yaml")) << "it has no training_step any more";
}

TEST(TrainingStepText, KeepsTheEnvironmentAndWhereItStands) {
  const std::string text = scenario(fmt::format("{{{}, batch: {{sequence: 128}}}}", kModel)) +
                           "environment: {CUDA_LAUNCH_BLOCKING: 1, NCCL_ALGO: \"ring,tree\"}\n";
  const auto read = read_scenario(text, "a.yaml");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->program.environment.at("CUDA_LAUNCH_BLOCKING"), "1");
  EXPECT_EQ(read->program.environment.at("NCCL_ALGO"), "ring,tree");
  EXPECT_EQ(read->program.environment_spots.at("CUDA_LAUNCH_BLOCKING").line, 5);
  const auto step = read_training(text, "a.yaml");
  EXPECT_EQ(step->expansion.program.environment_spots.at("NCCL_ALGO").line, 5);
}

TEST(TrainingStepProgram, HasItsOperationsWhereTheStepIsSaid) {
  const std::string text =
      "# what: it is\n" +
      scenario(fmt::format("{{{}, batch: {{sequence: 128}}, sharding: fsdp}}", kModel), 2);
  const auto read = read_scenario(text, "a.yaml");
  ASSERT_TRUE(read);
  std::set<std::pair<int, int>> places;
  for_each_op(read->program, [&](const HostThread&, const Op& op, Around) {
    places.emplace(op.line, op.column);
  });
  EXPECT_THAT(places, ElementsAre(std::pair{5, 16}));
  EXPECT_EQ(read->program.summary, "what: it is");
}

TEST(TrainingStepProgram, OfAStepThatIsTooLargeEndsAtTheMostOperations) {
  TrainingStep step = small_step();
  step.data = 512;
  step.tensor = 4;
  const Expansion made = expand(step);
  EXPECT_FALSE(made.is_whole);
  EXPECT_LT(made.program.op_count, most_operations(Ranks::All) + 10);
  EXPECT_TRUE(expand(step, Ranks::OneOfEach).is_whole);
}

}  // namespace
}  // namespace foretrace::training
