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
  EXPECT_THAT(of("precision: {compute: float8}, parallel: {tensor: 2}", 2),
              HasSubstr("float8 is expanded for PyTorch's dense layers"));
  EXPECT_THAT(of("framework: megatron-core, precision: {compute: float16}"),
              HasSubstr("float16 is expanded for 'framework: pytorch' only"));
  EXPECT_THAT(of("precision: {compute: float32}"),
              HasSubstr("bfloat16, float16 and float8 are expanded"));
  EXPECT_THAT(
      problems(scenario("{model: {layers: 1, hidden: 200, heads: 5, ffn: 400, vocab: 1000}, "
                        "batch: {sequence: 128}, precision: {compute: float8}}")),
      HasSubstr("200 is no multiple of 16"));
}

}  // namespace
}  // namespace foretrace::training
