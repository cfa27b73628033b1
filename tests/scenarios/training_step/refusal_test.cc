// training_step: what is refused, and where the message points.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/training_step/steps.h"

namespace foretrace::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TrainingStepRefusal, NamesAllThatDoesNotDivideAtOnce) {
  const std::string text = scenario(
      fmt::format("{{{}, batch: {{sequence: 128}}, parallel: {{tensor: 3, pipeline: 5}}}}", kModel),
      15);
  EXPECT_THAT(
      problems(text),
      AllOf(HasSubstr("8 heads cannot be split over 3"), HasSubstr("'tensor' may be 1, 2"),
            HasSubstr("4 layers do not fill 5 pipeline stages"), HasSubstr("1000 the vocabulary"),
            HasSubstr("1 micro-batches leave stages of a pipeline of 5 idle")));
}

TEST(TrainingStepRefusal, PointsAtTheOptionThatIsWrong) {
  const auto place_of = [](std::string_view rest) {
    const std::string text = problems(scenario(
        fmt::format("\n  {}\n  batch: {{sequence: 128, passes: 3}}\n  {}", kModel, rest), 4));
    return text.substr(0, text.find(": error"));
  };
  EXPECT_EQ(place_of("parallel:\n    tensor: 1\n    pipeline: 4"), "a.yaml:6:34");
  EXPECT_EQ(place_of("parallel:\n    pipeline: 1\n    tensor: 3"), "a.yaml:8:5")
      << "4 processes are no replicas of 3";
  EXPECT_EQ(place_of("parallel: {expert: 2}"), "a.yaml:7:22");
  EXPECT_EQ(place_of("parallel: {tensor: 4, overlap: true}"), "a.yaml:7:22") << "2 heads of keys";
  EXPECT_EQ(place_of("parallel: {tensor: 2}\n  precision: {parameters: float32}"), "a.yaml:8:27");
  EXPECT_EQ(place_of("framework: megatron-core\n  sharding: fsdp"), "a.yaml:8:13");
  EXPECT_EQ(place_of("framework: megatron-core\n  loss: separate"), "a.yaml:8:9");
  EXPECT_EQ(place_of("parallel: {context: 4}\n  attention: unfused"), "a.yaml:8:14");
}

TEST(TrainingStepRefusal, IsOfWhatOnlySomeRecomputationHas) {
  const auto problem = [](std::string_view rest) {
    return problems(scenario(fmt::format("{{{}, batch: {{sequence: 128}}, {}}}", kModel, rest)));
  };
  EXPECT_THAT(problem("keeps: {output: true}"), HasSubstr("'recompute: full'"));
  EXPECT_THAT(problem("recompute: full, framework: megatron, keeps: {output: true}"),
              HasSubstr("'keeps' is what layers keep that PyTorch or JAX recomputes"));
  EXPECT_THAT(problem("recompute: full, attention: unfused, keeps: {output: true}"),
              HasSubstr("with a kernel for attention"));
  EXPECT_THAT(problem("recompute_every: 2"), HasSubstr("'recompute_every' is of whole layers"));
  EXPECT_THAT(problem("recompute: full, recompute_every: 0"), HasSubstr("recompute_every"));
  EXPECT_THAT(problem("loss: fused, loss_type: bfloat16"),
              HasSubstr("a loss in bfloat16 is expanded where it is separate"));
  EXPECT_THAT(problem("sharding: fsdp, fsdp: {shard: 3}"), HasSubstr("no copies that 3 share"));
  EXPECT_EQ(problem("recompute: full, keeps: {output: true}, recompute_every: 2"), "");
}

TEST(TrainingStepRefusal, IsOfAStepWithoutAValue) {
  EXPECT_THAT(problems("schema_version: 1\nname: a\ntraining_step:\n"),
              HasSubstr("a.yaml:3:1: error: 'training_step' has no value"));
}

TEST(TrainingStepRefusal, IsOfAStepThatIsNoMap) {
  for (const char* step : {"hello", "[]", "3"}) {
    EXPECT_THAT(problems(scenario(step)), HasSubstr("a training step is a map")) << step;
  }
}

TEST(TrainingStepRefusal, IsOfHeadsWithoutAWidth) {
  EXPECT_THAT(problems(scenario("{model: {style: llama, layers: 2, hidden: 7, heads: 32, ffn: 64, "
                                "vocab: 64}, batch: {sequence: 128}}")),
              HasSubstr("32 heads of a width of 7 in all"));
}

TEST(TrainingStepRefusal, SaysWhichBatchesDivide) {
  const std::string text =
      scenario(fmt::format("{{{}, batch: {{sequence: 128, micro: 2, global: 7}}}}", kModel), 2);
  EXPECT_THAT(problems(text), AllOf(HasSubstr("7 sequences"), HasSubstr("a multiple of 4: 4 or 8"),
                                    HasSubstr("a.yaml:4")));
}

TEST(TrainingStepRefusal, SuggestsWords) {
  EXPECT_THAT(problems(scenario("{model: llama3-8, batch: {sequence: 128}}")),
              HasSubstr("llama3-8b"));
  EXPECT_THAT(
      problems(scenario(fmt::format("{{{}, batch: {{sequence: 1}}, recompute: al}}", kModel))),
      HasSubstr("selective"));
  EXPECT_THAT(problems(scenario("{model: {config: nowhere.json}, batch: {sequence: 1}}")),
              HasSubstr("nowhere.json"));
}

TEST(TrainingStepRefusal, IsReplicasThatAreNotWhole) {
  EXPECT_THAT(
      problems(scenario(
          fmt::format("{{{}, batch: {{sequence: 1}}, parallel: {{tensor: 2}}}}", kModel), 3)),
      HasSubstr("3 processes are not whole replicas of 2"));
}

TEST(TrainingStepRefusal, IsOfSizesThatCannotBeCountedOrWrittenDown) {
  for (const char* batch : {"{sequence: 1000000000, micro: 1000}", "{sequence: 1000000000}"}) {
    EXPECT_THAT(problems(scenario(fmt::format("{{{}, batch: {}}}", kModel, batch), 1)),
                HasSubstr("elements"));
  }
  EXPECT_THAT(
      problems(scenario("{model: {style: gpt, layers: 100000000, hidden: 64, heads: 1, ffn: 64, "
                        "vocab: 100}, batch: {sequence: 16}}",
                        1)),
      HasSubstr("100000000 layers; at most 4096 are expanded"));
}

}  // namespace
}  // namespace foretrace::training
