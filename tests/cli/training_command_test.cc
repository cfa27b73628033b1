// Training steps as a user asks for them: few of many micro-batches, memory in the run, experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kStep =
    "schema_version: 1\nname: a\nprocesses: 2\ntraining_step:\n"
    "  model: {layers: 1, hidden: 256, heads: 4, ffn: 512, vocab: 1000}\n"
    "  batch: {sequence: 128, passes: 40}\n  sharding: ddp\n  steps: 1\n";

TEST(TrainingCommands, AStepOfSecondsIsSaidInSeconds) {
  const Scratch scratch;
  scratch.write("step.yaml",
                "schema_version: 1\nname: a\nprocesses: 1\ntraining_step: {model: llama3-8b, "
                "batch: {sequence: 8192, micro: 1, global: 16}, sharding: none}\n");
  const Ran ran = scratch.run("foretrace simulate step.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex("\nstep: 1[0-9]\\.[0-9][0-9] s, [0-9]+ tokens/s"));
}

TEST(TrainingCommands, ATableOfNoStepsIsRefused) {
  const Scratch scratch;
  scratch.write("none.csv", "id,model\n");
  scratch.write("none.jsonl", "");
  for (const char* const arguments :
       {"none.csv", "none.jsonl", "reports/published/training.csv --only nothing",
        "reports/measured/pytorch_steps/h200_x2/results.jsonl.gz --only nothing"}) {
    const Ran ran = scratch.run(std::string{"foretrace training-table "} + arguments);
    EXPECT_EQ(ran.exit_code, 2) << arguments << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("no step")) << arguments;
  }
}

TEST(TrainingCommands, FewPassesTakeAsLongAsAll) {
  const Scratch scratch;
  scratch.write("step.yaml", kStep);
  const Ran all = scratch.run("foretrace simulate step.yaml --one-of-each -o all");
  const Ran few = scratch.run("foretrace simulate step.yaml --one-of-each --few-passes -o few");
  EXPECT_THAT(all.out, Not(HasSubstr("micro-batches")));
  EXPECT_THAT(few.out, HasSubstr("above 6 of 40 micro-batches"));
  EXPECT_NEAR(step_ms(few) / step_ms(all), 1, 0.02);
  const auto peak_of = [&](const char* run) {
    const auto timeline =
        nlohmann::json::parse(read_file(scratch.path() / run / "predicted.timeline.json"));
    std::int64_t peak = 0;
    for (const auto& row : timeline.at("memory")) peak = std::max<std::int64_t>(peak, row[3]);
    return peak;
  };
  EXPECT_NEAR(static_cast<double>(peak_of("few")) / static_cast<double>(peak_of("all")), 1, 0.02)
      << "tokens of 40 passes";
  const Ran refused =
      scratch.run("foretrace simulate scenarios/examples/prefetch_two_streams.yaml --few-passes");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no 'training_step'"));
}

TEST(TrainingCommands, OneOfEachSpreadsOverAsManyNodesAsAll) {
  const Scratch scratch;
  std::string step = kStep;
  scratch.write("step.yaml", step.replace(step.find("processes: 2"), 12, "processes: 12"));
  const std::string command = "foretrace simulate step.yaml --machine h100-nvswitch-8";
  const Ran all = scratch.run(command);
  const Ran few = scratch.run(command + " --one-of-each");
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_NEAR(step_ms(few) / step_ms(all), 1, 0.001);
  const Ran more = scratch.run(command + " --nodes 4");
  EXPECT_NEAR(step_ms(scratch.run(command + " --nodes 4 --one-of-each")) / step_ms(more), 1, 0.001);
  EXPECT_THAT(scratch.run(command + " --nodes 5 --one-of-each").err,
              HasSubstr("12 processes cannot be spread evenly"));
}

TEST(TrainingCommands, PrintWritesWhatAStepSaysBesideItsProgram) {
  const Scratch scratch;
  scratch.write("step.yaml", kStep + "  recompute: full\n  ddp: {bucket: 8MiB}\n");
  const auto json =
      nlohmann::json::parse(scratch.run("foretrace print step.yaml --format json").out);
  const auto& step = json.at("training_step");
  EXPECT_EQ(step.at("model").at("kv_heads"), 4) << "a default, filled in";
  EXPECT_EQ(step.at("data"), 2);
  EXPECT_EQ(step.at("passes"), 40);
  EXPECT_EQ(step.at("steps"), 1);
  EXPECT_EQ(step.at("sharding"), "ddp");
  EXPECT_EQ(step.at("recompute"), "full");
  EXPECT_EQ(step.at("parameters"), "bfloat16");
  EXPECT_EQ(step.at("bucket_bytes"), 8 << 20);
  const auto other = nlohmann::json::parse(
      scratch.run("foretrace print scenarios/examples/prefetch_two_streams.yaml --format json")
          .out);
  EXPECT_FALSE(other.contains("training_step"));
}

TEST(TrainingCommands, PlanSharesExpertsWhereItIsAskedTo) {
  const Scratch scratch;
  scratch.write("config.json", R"({"model_type": "mixtral", "num_hidden_layers": 2,
 "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
 "intermediate_size": 512, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1024})");
  const Ran ran = scratch.run(
      "foretrace plan config.json --global-batch 8 --sequence 128 --gpus 4 --keep expert=4 --keep "
      "micro=1 --keep recompute=none --keep sharding=zero1 --top 1 -o p.json --write-scenario 1 "
      "best.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto plan = nlohmann::json::parse(read_file(scratch.path() / "p.json"));
  EXPECT_EQ(plan["rows"][0]["expert"], 4);
  EXPECT_THAT(read_file(scratch.path() / "best.yaml"), HasSubstr("expert: 4"));
}

}  // namespace
}  // namespace foretrace::test
