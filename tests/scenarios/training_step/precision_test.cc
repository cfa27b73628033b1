// Steps whose linear layers multiply float8, and steps in float16: which products, which casts,
// what memory, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::HasSubstr;

TrainingStep step_with(const std::string& precision, std::string_view rest = "") {
  return read_training(
             scenario(fmt::format("{{{}, batch: {{sequence: 128}}, precision: {{{}}}, steps: 1{}}}",
                                  kModel, precision, rest)),
             "a.yaml")
      ->step;
}

std::map<DataType, std::size_t> products_of(const TrainingStep& step) {
  std::map<DataType, std::size_t> found;
  for_each_op(expanded(step), [&](const HostThread&, const Op& op, Around) {
    if (const auto* product = std::get_if<Gemm>(&op.kind)) ++found[product->type];
  });
  return found;
}

// Seven linear layers in each of four blocks: query, key, value, output, gate, up, down.
TEST(Float8Step, MultipliesLinearLayersButTheHeadInEightBits) {
  const auto products = products_of(step_with("compute: float8"));
  EXPECT_EQ(products.at(DataType::Float8E4M3), 28u) << "forward";
  EXPECT_EQ(products.at(DataType::Float8E5M2), 56u) << "gradients of inputs and weights";
  EXPECT_EQ(products.at(DataType::BFloat16), 3u) << "the head";
  EXPECT_EQ(products_of(step_with("compute: bfloat16")).at(DataType::BFloat16), 87u);
}

TEST(Float8Step, FindsAScaleAndCastsForEachOperand) {
  const TrainingStep step = step_with("compute: float8");
  EXPECT_EQ(times(step, "id: amax_"), 28u * 3) << "input, weight, gradient of the output";
  EXPECT_EQ(times(step, "id: cast_"), 28u * 3);
  EXPECT_EQ(times(step, "id: turn_"), 28u * 2) << "weight and input, the other way";
  EXPECT_EQ(times(step_with("compute: bfloat16"), "id: amax_"), 0u);
}

TEST(Float8Step, MultipliesRowsOfBothOperands) {
  for_each_op(expanded(step_with("compute: float8")), [](const HostThread&, const Op& op, Around) {
    const auto* product = std::get_if<Gemm>(&op.kind);
    if (product == nullptr || product->type == DataType::BFloat16) return;
    EXPECT_TRUE(product->transpose_a);
    EXPECT_FALSE(product->transpose_b);
  });
  EXPECT_NO_THROW(program_of(step_with("compute: float8"))) << "its text reads as the same program";
}

TEST(Float8Step, HasCopiesInEightBitsForAProductOnly) {
  const auto expansion = [](const char* precision) {
    Program head;
    head.name = "a";
    return expand(step_with(precision), Ranks::All, head);
  };
  const Expansion narrow = expansion("compute: float8"), wide = expansion("compute: bfloat16");
  EXPECT_GT(narrow.curves.front().changes.size(), wide.curves.front().changes.size());
  EXPECT_EQ(narrow.curves.front().changes.back().bytes, wide.curves.front().changes.back().bytes);
  EXPECT_GE(sum(narrow.memory), sum(wide.memory));
}

constexpr std::string_view kCore = ", framework: megatron-core";

// Four linear layers in each of four blocks: qkv, output, up (joined with gate), down.
TEST(TransformerEngine, CastsOperandsOnceAndWeightsOnceAStep) {
  const TrainingStep step = step_with("compute: float8", kCore);
  const auto products = products_of(step);
  EXPECT_EQ(products.at(DataType::Float8E4M3), 16u) << "forward";
  EXPECT_EQ(products.at(DataType::Float8E5M2), 32u) << "gradients of inputs and weights";
  EXPECT_EQ(products.at(DataType::BFloat16), 3u) << "the head";
  EXPECT_EQ(times(step, "id: amax_"), 16u * 2 + 4) << "input, gradient; each block's weights";
  EXPECT_EQ(times(step, "id: cast_"), 16u * 2 + 4);
  EXPECT_EQ(times(step, "id: turn_"), 0u) << "both orders are there";
}

TEST(TransformerEngine, HasDelayedScalesBeforeItCasts) {
  const TrainingStep step = step_with("compute: float8, scales: delayed", kCore);
  EXPECT_EQ(times(step, "id: amax_"), 0u);
  EXPECT_EQ(times(step, "id: cast_"), 16u * 2 + 4 - 8) << "norms cast the inputs of qkv and up";
  EXPECT_EQ(times(step, "id: turn_"), 16u) << "inputs, for the weights' gradients";
}

TEST(TransformerEngine, MultipliesBlocksOfMxAndNv) {
  EXPECT_EQ(products_of(step_with("compute: mxfp8", kCore)).at(DataType::Float8E4M3), 48u);
  EXPECT_EQ(products_of(step_with("compute: nvfp4", kCore)).at(DataType::Float4E2M1), 48u);
  for_each_op(expanded(step_with("compute: nvfp4", kCore)),
              [](const HostThread&, const Op& op, Around) {
                const auto* product = std::get_if<Gemm>(&op.kind);
                if (product == nullptr || product->type == DataType::BFloat16) return;
                EXPECT_EQ(product->scales, Scales::Nv);
              });
  EXPECT_NO_THROW(program_of(step_with("compute: nvfp4", kCore)));
}

TEST(TransformerEngine, PadsExpertsRowsToWhatIsMultiplied) {
  const TrainingStep step =
      read_training(scenario("{model: {layers: 1, hidden: 64, heads: 2, ffn: 64, vocab: 1000, "
                             "experts: 6, top_k: 2}, batch: {sequence: 128}, steps: 1, framework: "
                             "megatron-core, precision: {compute: float8}, experts: "
                             "{products: loop}}"),
                    "a.yaml")
          ->step;
  EXPECT_NO_THROW(program_of(step)) << "43 rows of an expert are 64";
}

TEST(TransformerEngine, SavesInEightBits) {
  const auto activations = [](const char* precision) {
    Program head;
    head.name = "a";
    return expand(step_with(precision, kCore), Ranks::All, head)
        .memory[static_cast<std::size_t>(Part::Activations)];
  };
  EXPECT_LT(activations("compute: float8"), activations("compute: bfloat16"));
}

TEST(Adapters, HaveSmallProductsAndTrainNothingElse) {
  const TrainingStep step = step_with("compute: bfloat16", ", adapters: {rank: 8}");
  // Each of 12 adapters, beside query, key and value: two forward, four backward.
  EXPECT_EQ(times(step, "id: adapter_"), 12u * 6);
  const std::size_t frozen = products_of(step).at(DataType::BFloat16);
  EXPECT_EQ(frozen, 87u - 29 + 12 * 6) << "no gradients of weights";
  EXPECT_EQ(times(step, "id: norm_weights"), 0u);
  EXPECT_EQ(times(step, "id: embedding_backward"), 0u);
  const auto optimizer = [](const TrainingStep& of) {
    Program head;
    head.name = "a";
    return expand(of, Ranks::All, head).memory[static_cast<std::size_t>(Part::Optimizer)];
  };
  EXPECT_LT(optimizer(step), optimizer(step_with("compute: bfloat16")) / 10);
}

// A frozen layer needs no input for its weights: of a block two norms' results and the product of
// gate and up are not kept, but for what an adapter reads.
TEST(Adapters, KeepWhatTheyReadOfFrozenLayers) {
  const auto kept = [](const std::string& rest) {
    TrainingStep step = step_with("compute: bfloat16", rest);
    step.sequence = 4096;
    Program head;
    head.name = "a";
    return expand(step, Ranks::All, head).memory[static_cast<std::size_t>(Part::Activations)];
  };
  const TrainingStep step = step_with("compute: bfloat16");
  const std::int64_t of_a_block = 4096 * 2 * step.model.layers;
  const std::int64_t short_ones = of_a_block * 8;
  const std::int64_t last_norm = 4096 * 2 * step.model.hidden;  // which the frozen head reads
  EXPECT_EQ(kept("") - kept(", adapters: {rank: 8}"),
            of_a_block * (step.model.hidden + step.model.ffn) + last_norm - 3 * short_ones)
      << "queries', keys' and values' adapters read one input";
  EXPECT_EQ(kept("") - kept(", adapters: {rank: 8, queries: false, output: true}"),
            of_a_block * (2 * step.model.hidden + step.model.ffn) + last_norm - short_ones)
      << "attention has that one";
}

TEST(FrozenParameters, AreHeldInEightBitsByTransformerEngineAndTwiceWhereBlocksHaveScales) {
  const auto held = [](const std::string& precision) {
    Program head;
    head.name = "a";
    return expand(step_with(precision, ", framework: megatron-core, adapters: {rank: 8}"),
                  Ranks::All, head)
        .memory[static_cast<std::size_t>(Part::Parameters)];
  };
  const std::int64_t wide = held("compute: bfloat16");
  const std::int64_t narrow = held("compute: float8, scales: delayed");
  EXPECT_LT(narrow, wide);
  EXPECT_GT(2 * narrow, wide) << "the embedding and the head are not";
  EXPECT_NEAR(static_cast<double>(held("compute: mxfp8") - narrow),
              static_cast<double>(wide - narrow) * (1 + 2. / 32), 0.01 * static_cast<double>(wide));
  EXPECT_LT(held("compute: nvfp4"), wide);
}

TEST(CompiledStep, FusesWhatIsPointwise) {
  const TrainingStep fused = step_with("compute: bfloat16", ", compiled: true");
  const TrainingStep eager = step_with("compute: bfloat16");
  EXPECT_EQ(times(eager, "id: residual"), 8u);
  EXPECT_EQ(times(fused, "id: residual"), 0u) << "in the norm's kernel";
  EXPECT_EQ(times(fused, "id: rope"), 4u * 4 + 2) << "one for queries, one for keys; the table";
  EXPECT_EQ(times(eager, "id: gate_backward"), 8u);
  EXPECT_EQ(times(fused, "id: gate_backward"), 0u);
  EXPECT_EQ(products_of(fused), products_of(eager));
}

// Of a layer's seven products the first, third, fifth and last are kept, and attention.
TEST(RecomputedProducts, AreEverySecondOne) {
  const TrainingStep step = step_with("compute: bfloat16", ", recompute: products");
  EXPECT_EQ(products_of(step).at(DataType::BFloat16), 87u + 4 * 3);
  EXPECT_EQ(times(step, "id: attention}"), times(step_with("compute: bfloat16"), "id: attention}"));
  const auto memory = [](Recompute recompute) {
    TrainingStep of = small_step();
    of.sequence = 4096;
    of.recompute = recompute;
    Program head;
    head.name = "a";
    return sum(expand(of, Ranks::All, head).memory);
  };
  EXPECT_LT(memory(Recompute::Products), memory(Recompute::None));
  EXPECT_GT(memory(Recompute::Products), memory(Recompute::Full));
}

// A layer's products are query, key, value, output, gate, up and down, of which the last needs no
// second time; the head's three are not in layers.
// Torchao's peaks of memory are the same in float8 and in bfloat16.
TEST(RecomputedProducts, OfFloat8AreEverySecondOneAndScalesAreKept) {
  const TrainingStep step = step_with("compute: float8", ", recompute: products");
  EXPECT_EQ(products_of(step).at(DataType::Float8E4M3), 28u + 4 * 3);
  EXPECT_EQ(times(step, "id: amax_"), times(step_with("compute: float8"), "id: amax_"));
  EXPECT_EQ(times(step, "id: attention}"), times(step_with("compute: float8"), "id: attention}"));
}

TEST(RecomputedLayers, RunAgainWhatTheyDoNotKeep) {
  const auto products = [](const char* keeps) {
    return products_of(step_with("compute: bfloat16", std::string{", recompute: full"} + keeps))
        .at(DataType::BFloat16);
  };
  EXPECT_EQ(products(""), 87u + 4 * 6);
  EXPECT_EQ(products(", keeps: {queries: true}"), 87u + 4 * 3);
  EXPECT_EQ(products(", keeps: {queries: true, output: true, down: true}"), 87u + 4 * 2);
  EXPECT_EQ(products(", keeps: {queries: true, output: true, up: true, down: true}"), 87u);
  EXPECT_EQ(products(", recompute_every: 2"), 87u + 2 * 6) << "two of four layers";
}

TEST(RecomputedLayers, HoldWhatTheyKeep) {
  const auto step = [](Kept keeps, std::int64_t every = 1) {
    TrainingStep of = small_step();
    of.sequence = 4096;
    of.recompute = Recompute::Full;
    of.keeps = keeps;
    of.recompute_every = every;
    return of;
  };
  const auto memory = [](const TrainingStep& of) {
    Program head;
    head.name = "a";
    return sum(expand(of, Ranks::All, head).memory);
  };
  // Of three layers that are not the last one: 256 + 2 x 64 numbers of two bytes for each token.
  EXPECT_NEAR(static_cast<double>(memory(step({.queries = true})) - memory(step({}))),
              4096.0 * 384 * 2 * 3, 4096.0 * 384 * 2);
  EXPECT_EQ(times(step({.attention = true}), "id: attention}"),
            times(small_step(), "id: attention}"));
  EXPECT_EQ(times(step({}), "id: attention}"), 2 * times(small_step(), "id: attention}"));
  EXPECT_GT(memory(step({}, 2)), memory(step({})));
}

// Five groups: four layers and the rest.
TEST(HybridSharding, ScattersAmongNeighboursAndReducesOverCopies) {
  TrainingStep step = small_step();
  step.data = 8;
  step.sharding = Sharding::Fsdp;
  const auto memory = [](const TrainingStep& of, Part part) {
    Program head;
    head.name = "a";
    return expand(of, Ranks::All, head).memory[static_cast<std::size_t>(part)];
  };
  const std::int64_t all = memory(step, Part::Optimizer);
  EXPECT_EQ(times(step, "id: reduce_over_copies"), 0u);
  step.shard = 8;
  EXPECT_FALSE(step.is_hybrid()) << "one copy";
  step.shard = 4;
  EXPECT_EQ(times(step, "id: reduce_over_copies"), 5u) << "of one process";
  EXPECT_NEAR(static_cast<double>(memory(step, Part::Optimizer)), 2.0 * static_cast<double>(all),
              1000)
      << "rounded up in each group";
  const Program program = expanded(step);
  std::map<std::size_t, std::size_t> sizes;
  for (const Communicator& group : program.communicators) ++sizes[group.members.size()];
  EXPECT_EQ(sizes[4], 2u) << "two copies";
  EXPECT_EQ(sizes[2], 4u) << "four shards";
}

TEST(HalfLoss, ReadsLogitsAsTheyAre) {
  const TrainingStep step = step_with("compute: bfloat16", ", loss_type: bfloat16");
  EXPECT_EQ(times(step, "id: widen_logits"), 0u);
  EXPECT_EQ(times(step, "id: softmax_backward"), 1u);
  EXPECT_EQ(times(step_with("compute: bfloat16"), "id: widen_logits"), 1u);
}

TEST(SplitLayers, GatherTheirInputOnceOrEach) {
  const auto gathers = [](const std::string& rest) {
    const auto read = read_training(
        scenario(fmt::format("{{{}, batch: {{sequence: 128}}, parallel: {{tensor: 2, sequence: "
                             "true{}}}, steps: 1}}",
                             kModel, rest),
                 2),
        "a.yaml");
    return std::pair{times(read->step, "all_gather"), times(read->step, "dtensor")};
  };
  const auto once = gathers(""), each = gathers(", gather_each: true"),
             plain = gathers(", dtensor: false");
  EXPECT_GT(each.first, once.first);
  EXPECT_GT(once.second, 0u);
  EXPECT_EQ(plain.second, 0u);
}

TEST(Float16Step, IsTheSameInFloat16AndScalesItsGradients) {
  const TrainingStep step = step_with("compute: float16, parameters: float32");
  EXPECT_EQ(products_of(step).at(DataType::Float16), 87u);
  EXPECT_EQ(times(step, "id: unscale_gradients"), 1u);
}

TEST(Precision, SaysWhatIsNotExpanded) {
  const auto of = [](const std::string& rest, int processes = 1) {
    return problems(
        scenario("{" + std::string{kModel} + ", batch: {sequence: 128}, " + rest + "}", processes));
  };
  EXPECT_THAT(of("framework: megatron, precision: {compute: float8}"),
              HasSubstr("less than 16 bits are expanded for Megatron-Core"));
  EXPECT_THAT(of("precision: {compute: float8, scales: delayed}"),
              HasSubstr("delayed scales are Transformer Engine's"));
  EXPECT_THAT(of("framework: megatron-core, precision: {compute: float16}"),
              HasSubstr("float16 is expanded for 'framework: pytorch' only"));
  EXPECT_THAT(of("framework: megatron-core, compiled: true"),
              HasSubstr("'compiled' is PyTorch's torch.compile"));
  EXPECT_THAT(of("framework: megatron-core, recompute: products"),
              HasSubstr("'recompute: products' is torchtitan's"));
  EXPECT_THAT(of("sharding: fsdp, adapters: {rank: 8}", 2),
              HasSubstr("adapters are expanded beside dense layers"));
  EXPECT_THAT(of("precision: {compute: float32}"),
              HasSubstr("bfloat16, float16, float8, mxfp8 and nvfp4 are expanded"));
  EXPECT_THAT(
      problems(scenario("{model: {layers: 1, hidden: 200, heads: 5, ffn: 400, vocab: 1000}, "
                        "batch: {sequence: 128}, precision: {compute: float8}}")),
      HasSubstr("200 is no multiple of 16"));
  EXPECT_THAT(
      problems(scenario("{model: {layers: 1, hidden: 64, heads: 2, ffn: 80, vocab: 1000}, batch: "
                        "{sequence: 128}, parallel: {tensor: 2}, framework: megatron-core, "
                        "precision: {compute: float8}}",
                        2)),
      HasSubstr("40 is no multiple of 16"))
      << "each process has half of the feed-forward width";
}

}  // namespace
}  // namespace foretrace::training
