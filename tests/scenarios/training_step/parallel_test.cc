// Context parallel, interleaved stages and Megatron's habits: what is written, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TrainingStep split_step(std::int64_t context, ContextExchange exchange) {
  TrainingStep step = small_step();
  step.sequence = 1024;
  step.context = context;
  step.exchange = exchange;
  step.sharding = Sharding::Ddp;
  return step;
}

/// Sum of the `flops:` of all attention in one process's text, which has them in all others, too.
double attention_flops(const TrainingStep& step) {
  const std::string text = text_of(step, Ranks::OneOfEach);
  double all = 0;
  const std::size_t end = text.find("\n  rank_1:");
  for (std::size_t at = 0; (at = text.find("flops: ", at)) < end; ++at) {
    all += std::stod(text.substr(at + 7));
  }
  return all;
}

TEST(ContextParallel, SplitsTokensAndFlopsAndCountsEachTokenOnce) {
  const TrainingStep whole = split_step(1, ContextExchange::AllGather);
  for (const auto exchange : {ContextExchange::AllGather, ContextExchange::SendRecv}) {
    const TrainingStep step = split_step(4, exchange);
    EXPECT_EQ(step.processes(), 4);
    EXPECT_EQ(expand(step).tokens, expand(whole).tokens);
    EXPECT_DOUBLE_EQ(expand(step).flops, expand(whole).flops);
    EXPECT_DOUBLE_EQ(attention_flops(step), attention_flops(whole) / 4);
    const auto activations = [](const TrainingStep& of) {
      const Expansion expansion = expand(of);
      return static_cast<double>(expansion.memory[static_cast<std::size_t>(Part::Activations)]);
    };
    EXPECT_NEAR(activations(step), activations(whole) / 4, 0.01 * activations(whole));
  }
}

TEST(ContextParallel, PassesKeysRoundAndGradientsBack) {
  const TrainingStep ring = split_step(4, ContextExchange::SendRecv);
  // Of each of four layers, on each of four processes: three steps forward, four backward.
  EXPECT_EQ(executed(ring, "nccl_send"), 4u * 4 * (3 + 4));
  EXPECT_EQ(executed(ring, "nccl_recv"), 4u * 4 * (3 + 4));
  EXPECT_EQ(executed(ring, "nccl_all_gather"), 0u);
  const TrainingStep gathered = split_step(4, ContextExchange::AllGather);
  EXPECT_EQ(executed(gathered, "nccl_all_gather"), 4u * 4 * 2);
  EXPECT_EQ(executed(gathered, "nccl_send"), 4u * 4 * 4) << "gradients of keys only";
}

TEST(ContextParallel, ReducesGradientsOverAllThatHoldTheSameParameters) {
  TrainingStep step = split_step(2, ContextExchange::AllGather);
  step.data = 2;
  step.tensor = 2;
  step.sequence_parallel = true;
  const std::string text = text_of(step);
  EXPECT_THAT(text, AllOf(HasSubstr("tensor_parallel_0: {ranks: [0, 1]"),
                          HasSubstr("context_parallel_0: {ranks: [0, 2]"),
                          HasSubstr("context_parallel_2: {ranks: [4, 6]"),
                          HasSubstr("data_parallel_0: {ranks: [0, 2, 4, 6]")));
}

TEST(ContextParallel, IsRefusedWhereSequencesDoNotDivide) {
  const auto of = [](int processes, std::string_view rest) {
    return problems(scenario(fmt::format("{{{}, {}}}", kModel, rest), processes));
  };
  EXPECT_THAT(of(3, "batch: {sequence: 128}, parallel: {context: 3}"),
              AllOf(HasSubstr("128 tokens cannot be split over 3 context parallel ranks"),
                    HasSubstr("a multiple of 6"), HasSubstr("a.yaml:4:"), HasSubstr("^")));
  EXPECT_THAT(of(8, "batch: {sequence: 36}, parallel: {context: 2, tensor: 4, sequence: true}"),
              AllOf(HasSubstr("18 tokens of a sequence cannot be split over 4"),
                    HasSubstr("a multiple of 8")));
  EXPECT_THAT(of(6, "batch: {sequence: 128}, parallel: {context: 4}"),
              HasSubstr("6 processes are not whole replicas of 4"));
  EXPECT_THAT(of(4, "batch: {sequence: 128}, parallel: {context: 4, exchange: ring}"),
              HasSubstr("send_recv"));
  EXPECT_THAT(of(1,
                 "batch: {sequence: 128}, parallel: {tensor: 1000000000, context: 1000000000, "
                 "pipeline: 1000000000}"),
              HasSubstr("not whole replicas"));
}

TrainingStep interleaved_step(std::int64_t stages, std::int64_t chunks, std::int64_t passes) {
  TrainingStep step = small_step();
  step.model.layers = 8;
  step.pipeline = stages;
  step.chunks = chunks;
  step.passes = passes;
  return step;
}

TEST(InterleavedStages, SendEachMicroBatchAsOftenAsThereAreChunksButOneOnTheWay) {
  for (const std::int64_t passes : {4, 8, 40}) {
    const TrainingStep step = interleaved_step(4, 2, passes);
    const auto all = static_cast<std::uint64_t>(2 * passes * (4 * 2 - 1));
    EXPECT_EQ(executed(step, "nccl_send"), all) << passes;
    EXPECT_EQ(executed(step, "nccl_recv"), all) << passes;
    // As much arithmetic as without chunks.
    EXPECT_EQ(executed(step, "gemm"), executed(interleaved_step(4, 1, passes), "gemm"));
  }
}

TEST(InterleavedStages, AreALoopWhoseLengthDoesNotChangeMemory) {
  std::vector<std::uint64_t> operations;
  std::vector<std::int64_t> memory;
  for (const std::int64_t passes : {32, 36, 40, 44}) {
    const TrainingStep step = interleaved_step(4, 2, passes);
    operations.push_back(executed(step));
    memory.push_back(sum(expand(step).memory));
  }
  EXPECT_EQ(operations[2] - operations[1], operations[1] - operations[0]);
  EXPECT_EQ(operations[3] - operations[2], operations[1] - operations[0]);
  EXPECT_EQ(memory[3] - memory[2], memory[1] - memory[0]) << "logits and tokens of all passes";
  EXPECT_EQ(text_of(interleaved_step(4, 2, 32)).size(), text_of(interleaved_step(4, 2, 40)).size());
}

TEST(InterleavedStages, HoldMoreMicroBatchesThanThoseOfOneChunk) {
  const auto activations = [](std::int64_t chunks) {
    return expand(interleaved_step(4, chunks, 16))
        .memory[static_cast<std::size_t>(Part::Activations)];
  };
  // Of the first stage: four micro-batches of two layers; or eleven of one layer each.
  EXPECT_NEAR(static_cast<double>(activations(2)) / static_cast<double>(activations(1)), 11.0 / 8,
              0.1);
}

TEST(InterleavedStages, AreRefusedWhereLayersOrMicroBatchesDoNotDivide) {
  const auto of = [](std::string_view rest) {
    return problems(scenario(fmt::format("{{{}, {}}}", kModel, rest), 2));
  };
  EXPECT_THAT(
      of("batch: {sequence: 128, passes: 5}, parallel: {pipeline: 2, virtual: 4}"),
      AllOf(HasSubstr("2 layers of a stage are not 4 equal chunks"),
            HasSubstr("'virtual' may be 1, 2"),
            HasSubstr("5 micro-batches do not go through 2 interleaved stages in whole turns"),
            HasSubstr("a.yaml:4:")));
  EXPECT_THAT(of("batch: {sequence: 128, passes: 4}, parallel: {virtual: 2}"),
              HasSubstr("'pipeline' of at least 2"));
  EXPECT_THAT(of("batch: {sequence: 128, passes: 4}, parallel: {pipeline: 2, virtual: 2, schedule: "
                 "gpipe}"),
              HasSubstr("'schedule: 1f1b'"));
}

TrainingStep megatron_step() {
  TrainingStep step = small_step();
  step.model.heads = step.model.kv_heads = 8;
  step.tensor = step.data = 2;
  step.sequence_parallel = step.fused_loss = true;
  step.framework = Framework::MegatronCore;
  step.sharding = Sharding::Zero1;
  return step;
}

TEST(Megatron, JoinsProductsAndGathersInputsAgain) {
  const TrainingStep step = megatron_step();
  const Program program = program_of(step);
  EXPECT_EQ(count(program, "gemm"), 4u * 3 * (4 * 4 + 1)) << "of each of four processes";
  // Each layer: two inputs forward; backward two inputs again and two gradients; the head likewise;
  // the embedding's gradient; the parameters.
  EXPECT_EQ(executed(step, "nccl_all_gather"), 4u * (2 + 2 + 2) + 2 + 1 + 1);
  // Two sums forward, two gradients backward, the head's, the embedding; one bucket of gradients.
  EXPECT_EQ(executed(step, "nccl_reduce_scatter"), 4u * (2 + 2) + 1 + 1 + 1);
  TrainingStep eager = step;
  eager.framework = Framework::PyTorch;
  EXPECT_LT(3 * executed(step), 2 * executed(eager)) << "fewer kernels and calls";
}

TEST(Megatron, WidensLogitsAndCopiesQueriesWhereHeadsShareKeys) {
  TrainingStep step = megatron_step();
  const std::int64_t logits = step.tokens() * step.model.vocab / step.tensor;
  const auto kernel = [](std::string_view id, std::int64_t bytes) {
    return fmt::format("{{id: {}, kernel: pointwise, size: {}B}}", id, bytes);
  };
  EXPECT_EQ(times(step, kernel("largest_logit", 6 * logits)), 1u);
  EXPECT_EQ(times(step, kernel("exponents", 8 * logits)), 1u);
  EXPECT_EQ(times(step, kernel("logit_gradients", 10 * logits)), 1u);
  EXPECT_EQ(times(step, "join_heads"), 0u);
  EXPECT_EQ(times(step, "join_gradients"), 4u) << "a layer";
  step.model.kv_heads = 2;
  EXPECT_EQ(times(step, "join_heads"), 4u);
}

TEST(Megatron, CountsEmbeddingAndLossAsLayersWhereThatFillsTheStages) {
  TrainingStep step = small_step();
  step.model.kv_heads = 8;
  step.framework = Framework::MegatronCore;
  step.fused_loss = true;
  step.passes = 4;
  step.pipeline = 2;
  const auto products = [&](std::int64_t layers, std::int64_t chunks) {
    step.model.layers = layers;
    step.chunks = chunks;
    const std::string text = text_of(step, Ranks::OneOfEach);
    const std::size_t second = text.find("  rank_1:");
    std::pair<std::size_t, std::size_t> found{};
    for (std::size_t at = 0; (at = text.find("{id: qkv,", at)) != std::string::npos; ++at) {
      ++(at < second ? found.first : found.second);
    }
    return found;
  };
  const auto [first, second] = products(6, 4);  // 8 places: embedding + 0, 1, 1, 1; 1, 1, 1, loss
  EXPECT_EQ(first, second);
  EXPECT_GT(first, 0u);
  EXPECT_EQ(executed(step, "gemm"), 4u * (6 * 4 * 3 + 3));
}

TEST(Megatron, SendsTheLastGradientBeforeItWaitsForReducedOnes) {
  TrainingStep step = small_step();
  step.model.kv_heads = 8;
  step.passes = 4;
  step.data = step.pipeline = 2;
  step.sharding = Sharding::Zero1;
  const auto sends_first = [&](Framework framework, std::int64_t chunks) {
    step.framework = framework;
    step.chunks = chunks;
    step.fused_loss = framework == Framework::MegatronCore;
    const std::string text = text_of(step, Ranks::OneOfEach);
    return text.rfind("isend:") < text.rfind("work_wait: {work: bucket_");  // of the last stage
  };
  EXPECT_TRUE(sends_first(Framework::Megatron, 1));
  EXPECT_TRUE(sends_first(Framework::MegatronCore, 1));
  EXPECT_TRUE(sends_first(Framework::MegatronCore, 2));
  EXPECT_FALSE(sends_first(Framework::PyTorch, 1)) << "DDP's backward pass ends with them";
}

TEST(Megatron, PaysForNeitherDtensorsNorPyTorchsStages) {
  TrainingStep step = small_step();
  step.model.kv_heads = 8;
  step.passes = 4;
  step.tensor = step.pipeline = 2;
  const auto pays = [&](Framework framework) {
    step.framework = framework;
    return std::pair{times(step, "work: dtensor"), times(step, "work: stage")};
  };
  EXPECT_EQ(pays(Framework::Megatron), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_GT(pays(Framework::PyTorch).first, 0u);
  EXPECT_GT(pays(Framework::PyTorch).second, 0u);
}

TEST(LossParallel, OnOneRankHasNothingToSplit) {
  const auto of = [](std::string_view framework) {
    return problems(scenario(fmt::format("{{{}, batch: {{sequence: 128}}, framework: {}, parallel: "
                                         "{{loss: true}}}}",
                                         kModel, framework),
                             1));
  };
  EXPECT_EQ(of("pytorch"), "");
  EXPECT_EQ(of("megatron"), "");
}

TEST(Megatron, HoldsEighteenBytesForAParameterAndLessWithADistributedOptimizer) {
  TrainingStep step = megatron_step();
  step.tensor = 1;
  step.sequence_parallel = false;
  const auto of = [&](Part part) {
    const Expansion expansion = expand(step);
    return static_cast<double>(expansion.memory[static_cast<std::size_t>(part)]) /
           static_cast<double>(expansion.parameters);
  };
  step.sharding = Sharding::Ddp;
  EXPECT_NEAR(of(Part::Parameters), 2, 0.01);
  EXPECT_NEAR(of(Part::Gradients), 4, 0.01);
  EXPECT_NEAR(of(Part::Optimizer), 12, 0.01);
  step.sharding = Sharding::Zero1;
  EXPECT_NEAR(of(Part::Optimizer), 6, 0.01);
  step.float32_reduce = false;
  EXPECT_NEAR(of(Part::Gradients), 2, 0.01);
}

TEST(Megatron, RunsCollectivesBesideProductsWhereAsked) {
  TrainingStep step = megatron_step();
  const auto waits = [&] {
    const std::string text = text_of(step);
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find("work: beside}", at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  const std::size_t without = waits();
  step.overlaps_tensor = true;
  // Forward two inputs and two sums of each layer and the head's input, backward two gradients, of
  // each of four texts.
  EXPECT_EQ(waits() - without, 2u * 4 * (4 * 4 + 1 + 4 * 2)) << "collective and wait";
}

TEST(Megatron, IsRefusedWithPyTorchsSharding) {
  const auto of = [](std::string_view rest) {
    return problems(scenario(
        fmt::format("{{{}, batch: {{sequence: 128}}, framework: megatron-core, {}}}", kModel, rest),
        2));
  };
  EXPECT_THAT(of("sharding: fsdp"), HasSubstr("'sharding: zero1', or 'framework: pytorch'"));
  EXPECT_THAT(of("precision: {parameters: float32}"), HasSubstr("no 'parameters: float32'"));
  EXPECT_THAT(of("parallel: {tensor: 2, overlap: true}"), HasSubstr("sequence: true"));
  EXPECT_EQ(of("parallel: {tensor: 2, overlap: true, sequence: true}"), "");
}

}  // namespace
}  // namespace foretrace::training
