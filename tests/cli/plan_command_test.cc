// foretrace plan as a user runs it, on a model small enough to search in a moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

const std::string kTwoLayers = R"({"model_type": "llama", "num_hidden_layers": 2,
 "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4,
 "intermediate_size": 4096, "vocab_size": 8192, "tie_word_embeddings": false})";

Ran plan_two_layers(const Scratch& scratch, const std::string& rest) {
  scratch.write("config.json", kTwoLayers);
  return scratch.run(
      "foretrace plan config.json --machine h100-nvswitch-8 --global-batch 32 --sequence 512 " +
      rest);
}

/// One layout for each degree of tensor parallelism.
const std::string kFew =
    " --keep recompute=none --keep micro=2 --keep sharding=zero1 --keep pipeline=1 --top 1 "
    "-o p.html -o p.csv ";

TEST(PlanCommand, WritesNoRowThatIsFasterThanItsLowerBound) {
  const Scratch scratch;
  const Ran ran =
      plan_two_layers(scratch, "--gpus 8 --keep micro=2 --keep recompute=none --top 40 -o p.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto plan = nlohmann::json::parse(read_file(scratch.path() / "p.json"));
  ASSERT_GE(plan["rows"].size(), 2u);
  for (const auto& row : plan["rows"]) {
    EXPECT_LE(row["lower_bound_s"], row["step_s"]) << row.dump();
    EXPECT_GT(row["lower_bound_s"], 0.3 * row["step_s"].get<double>()) << row.dump();
  }
}

TEST(PlanCommand, WritesARowThatSimulateReproduces) {
  const Scratch scratch;
  const Ran ran = plan_two_layers(
      scratch,
      "--gpus 8,16" + kFew + "--cost-per-gpu-hour 2.5 -o p.json --write-scenario 1 best.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("MFU: 6 FLOPs for each token and parameter"));
  EXPECT_THAT(ran.out, HasSubstr("gpu.half_flops of the machine, 989.4 TFLOP/s"));
  const auto plan = nlohmann::json::parse(read_file(scratch.path() / "p.json"));
  ASSERT_EQ(plan["rows"].size(), 2u);
  const auto& best = plan["rows"][0];
  EXPECT_GT(best["step_s"], plan["rows"][1]["step_s"]) << "twice the GPUs";
  EXPECT_EQ(plan["searched"][0]["simulated"], 3) << "tensor 1, 2 and 4";
  EXPECT_LE(best["lower_bound_s"], best["step_s"]);
  EXPECT_LT(best["low_s"], best["step_s"]);
  EXPECT_EQ(best["simulated_passes"], best["passes"]);
  EXPECT_EQ(best["tensor"].get<int>() * best["pipeline"].get<int>() * best["data"].get<int>(), 8);
  EXPECT_NEAR(best["cost_per_1e12_tokens"].get<double>(),
              2.5 * best["gpu_hours_per_1e12_tokens"].get<double>(), 1e-3);
  EXPECT_EQ(best["remedy"], "host=2x") << "a model this small is bound by its calls";

  EXPECT_EQ(best["waits_for"], "launch-bound host") << "explain says the same";
  EXPECT_GT(best["waits_for_gain"], best["remedy_gain"]) << "no calls at all save more than half";
  EXPECT_THAT(ran.out, HasSubstr("row 1: without launch-bound host: "));

  const Ran simulated =
      scratch.run("foretrace simulate best.yaml --machine h100-nvswitch-8 --one-of-each");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_NEAR(step_ms(simulated), best["step_s"].get<double>() * 1e3,
              best["step_s"].get<double>() * 1)
      << "four digits of it";

  EXPECT_THAT(read_file(scratch.path() / "p.html"), HasSubstr("<svg"));
  const std::string csv = read_file(scratch.path() / "p.csv");
  EXPECT_THAT(csv, testing::StartsWith("row,model,machine,gpus,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST(PlanCommand, TriesFloat8WhereTheGpuMultipliesIt) {
  const Scratch scratch;
  scratch.write("config.json", kTwoLayers);
  const auto plan = [&](const char* machine) {
    return scratch.run(
        std::string{"foretrace plan config.json --gpus 8 --global-batch 32 --sequence 512 --keep "
                    "micro=2 --keep recompute=none --keep pipeline=1 --top 1 --precision float8 "
                    "--machine "} +
        machine + " --write-scenario 1 s.yaml");
  };
  const Ran ran = plan("8xH100");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(read_file(scratch.path() / "s.yaml"), HasSubstr("compute: float8"));
  const Ran old = plan("8xA100");
  EXPECT_EQ(old.exit_code, 2);
  EXPECT_THAT(old.err, HasSubstr("--precision float8: a 'NVIDIA A100-SXM4-80GB'"));
  EXPECT_THAT(old.err, HasSubstr("has no float8 arithmetic"));
}

TEST(PlanCommand, AnswersAlsoForAChangedMachine) {
  const Scratch scratch;
  const Ran ran = plan_two_layers(
      scratch, "--gpus 16 --also nic=0.1x --keep tensor=1" + kFew + "--write-scenario 2 slow.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("row 2: foretrace simulate slow.yaml --machine h100-nvswitch-8 "
                                 "--with \"nic=0.1x\" --one-of-each"));
  EXPECT_THAT(read_file(scratch.path() / "p.html"), HasSubstr("h100-nvswitch-8 with nic=0.1x"));
  const std::string csv = read_file(scratch.path() / "p.csv");
  EXPECT_THAT(csv, HasSubstr("1,config,h100-nvswitch-8,16,"));
  EXPECT_THAT(csv, HasSubstr("2,config,h100-nvswitch-8 with nic=0.1x,16,"));
}

TEST(PlanCommand, WritesRowsThatExplainAndOrderReadAfterSimulate) {
  const Scratch scratch;
  const Ran ran =
      plan_two_layers(scratch,
                      "--gpus 8 --keep pipeline=2 --keep micro=1 --keep recompute=none --top 1 "
                      "--write-scenario 1 row.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string simulate = "foretrace simulate row.yaml --machine h100-nvswitch-8 ";
  for (const char* how : {"", "--one-of-each", "--one-of-each --few-passes", "--few-passes"}) {
    const Ran simulated = scratch.run(simulate + how + " -o run");
    ASSERT_EQ(simulated.exit_code, 0) << how << simulated.err;
    const Ran explained = scratch.run("foretrace explain run");
    EXPECT_EQ(explained.exit_code, 0) << how << explained.err;
    EXPECT_THAT(explained.out, HasSubstr("region 'step'")) << how;
    EXPECT_THAT(explained.out, HasSubstr("critical path")) << how;
  }
  ASSERT_EQ(scratch.run(simulate + "--one-of-each -o run").exit_code, 0);
  const Ran order = scratch.run("foretrace order run");
  EXPECT_EQ(order.exit_code, 2);
  EXPECT_THAT(order.err, HasSubstr("without --one-of-each"));
  EXPECT_EQ(scratch.run("foretrace report run -o page.html --explain").exit_code, 0);
  scratch.write("row.yaml", read_file(scratch.path() / "row.yaml") + "# changed\n");
  EXPECT_EQ(scratch.run("foretrace explain run").exit_code, 0) << "a comment is no change";
}

TEST(PlanCommand, NamesTwoThatBindTogether) {
  const Scratch scratch;
  const Ran ran =
      plan_two_layers(scratch, "--gpus 8 --keep tensor=1 --with host=3x -o p.json" + kFew);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto row = nlohmann::json::parse(read_file(scratch.path() / "p.json"))["rows"][0];
  EXPECT_EQ(row["limited_by"], "the host and device memory together");
  EXPECT_EQ(row["remedy"], "host=2x hbm=2x");
  double alone = 0;
  for (const auto& remedy : row["remedies"]) {
    if (remedy["what"] == "host=2x" || remedy["what"] == "hbm=2x") {
      alone += remedy["gain"].get<double>();
    }
  }
  EXPECT_GT(row["remedy_gain"].get<double>(), alone + 0.05);
}

TEST(PlanCommand, SaysOnWhatItRestsAsSimulateAndExplainDo) {
  const Scratch scratch;
  const std::string machine = " --machine b200-nvswitch-8 ";  // later options win
  scratch.write("config.json", kTwoLayers);
  const Ran plan =
      scratch.run("foretrace plan config.json --global-batch 32 --sequence 512 --gpus 8" + kFew +
                  machine + "-o p.json --write-scenario 1 best.yaml");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const Ran simulate = scratch.run("foretrace simulate best.yaml --one-of-each -o run" + machine);
  ASSERT_EQ(simulate.exit_code, 0) << simulate.err;
  const std::string start = "of the GPUs' time rests on assumed parameters: ";
  const auto at = simulate.err.find(start);
  ASSERT_NE(at, std::string::npos) << simulate.err;
  const auto begin = simulate.err.rfind("note: ", at) + 6;
  const std::string line = simulate.err.substr(begin, simulate.err.find('\n', at) - begin);
  EXPECT_THAT(plan.out, HasSubstr("row 1: " + line));
  EXPECT_THAT(scratch.run("foretrace explain run").out, HasSubstr(line));
  EXPECT_THAT(read_file(scratch.path() / "p.html"), HasSubstr("On what they rest"));
  const auto row = nlohmann::json::parse(read_file(scratch.path() / "p.json"))["rows"][0];
  EXPECT_GT(row["rests_on"]["assumed"], 0.2);
  EXPECT_EQ(row["rests_on"]["assumed"], row["assumed"]);
  EXPECT_FALSE(row["rests_on"]["parameters"].empty());
}

/// What a directory is called makes up nothing in the scenarios that name it.
TEST(PlanCommand, TakesAConfigWhateverItsDirectoryIsCalled) {
  const Scratch scratch;
  const auto plan = [&](const std::string& name) {
    std::filesystem::create_directory(scratch.path() / name);
    std::filesystem::copy_file(scratch.path() / "scenarios/architectures/gpt2.json",
                               scratch.path() / name / "config.json");
    scratch.write("name", name + "/config.json");
    return scratch.run("foretrace plan \"$(cat name)\" --gpus 1 --coarse");
  };
  for (const char* const name : {"a\"b", "a\\b", "a'b", "a\"}, optimizer: \"sgd", "a: b #"}) {
    const Ran ran = plan(name);
    EXPECT_EQ(ran.exit_code, 0) << name << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("9 layouts, 9 of them fit")) << name;
  }
  for (const char* const name : {"a\xff"
                                 "b",
                                 "a\nb",
                                 "a\xe2\x80\xa8"
                                 "b"}) {
    const Ran ran = plan(name);
    EXPECT_EQ(ran.exit_code, 2) << name << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("no UTF-8 text, cannot be named in a file"));
  }
}

TEST(PlanCommand, DoublesTheUsualBatchUntilALayoutDividesIt) {
  const Scratch scratch;
  scratch.write("config.json", kTwoLayers);
  const std::string one =
      "foretrace plan config.json --sequence 128 --gpus 2048 --keep tensor=1 "
      "--keep pipeline=1 --keep micro=1 --keep recompute=none --top 1 -o p.json";
  const Ran ran = scratch.run(one);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("note: 2048 sequences a step: no layout divides 1024"));
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch.path() / "p.json"))["global_batch"], 2048);
  EXPECT_EQ(scratch.run(one + " --global-batch 1024").exit_code, 2);
}

TEST(PlanCommand, TriesStagesWhoseEndsHaveALayerLess) {
  const Scratch scratch;
  std::string six = kTwoLayers;
  six.replace(six.find(": 2,"), 4, ": 6,");
  scratch.write("config.json", six);
  const Ran ran = scratch.run(
      "foretrace plan config.json --machine h100-nvswitch-8 --global-batch 32 --sequence 512 "
      "--gpus 8 --keep pipeline=4 --keep tensor=1 --keep micro=1 --keep recompute=none --keep "
      "virtual=1 --top 1 -o p.json --write-scenario 1 row.yaml");
  ASSERT_EQ(ran.exit_code, 0) << ran.err << ran.out;
  const Ran simulated =
      scratch.run("foretrace simulate row.yaml --machine h100-nvswitch-8 --one-of-each");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
}

TEST(PlanCommand, PrintsWhatIsKnownWhenItIsInterrupted) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace plan llama3-405b --gpus 16384 -o p.json 2>said & plan=$!; "
      "until [ -s said ] || ! kill -0 $plan; do sleep 0.05; done; kill -INT $plan; wait $plan");
  EXPECT_EQ(ran.exit_code, 128 + 2) << read_file(scratch.path() / "said");
  EXPECT_THAT(ran.out, HasSubstr("Interrupted"));
  const auto plan = nlohmann::json::parse(read_file(scratch.path() / "p.json"));
  EXPECT_EQ(plan["searched"][0]["interrupted"], true);
}

TEST(PlanCommand, SimulatesHardlyMoreForTwiceTheLayers) {
  const Scratch scratch;
  const auto spans = [&](const char* layers) {
    std::string config = kTwoLayers;
    config.replace(config.find(": 2,"), 4, std::string{": "} + layers + ",");
    scratch.write("config.json", config);
    const Ran ran = scratch.run(
        "foretrace plan config.json --machine h100-nvswitch-8 --global-batch 64 --sequence 8192 "
        "--gpus 8 --keep pipeline=1 --keep micro=1 --top 1 -o p.json");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto plan = nlohmann::json::parse(read_file(scratch.path() / "p.json"));
    return plan["searched"][0]["simulated_spans"].get<double>();
  };
  EXPECT_LT(spans("80"), 1.5 * spans("40"));
}

TEST(PlanCommand, SaysWhatIsWrong) {
  const Scratch scratch;
  EXPECT_THAT(plan_two_layers(scratch, "--gpus 7 --keep tensor=2").err,
              HasSubstr("no layout of 7 GPUs divides 32 sequences"));
  const Ran keep = plan_two_layers(scratch, "--gpus 8 --keep tensors=2");
  EXPECT_EQ(keep.exit_code, 2);
  EXPECT_THAT(keep.err, HasSubstr("pipeline, recompute, sharding, tensor"));
  for (const char* kept : {"tensor=0", "tensor=-1", "micro=abc", "virtual=", "pipeline=1e3"}) {
    const Ran wrong = plan_two_layers(scratch, std::string{"--gpus 8 --keep "} + kept);
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.err, HasSubstr("it is a whole number from 1 to")) << kept;
  }
  EXPECT_THAT(plan_two_layers(scratch, "--gpus 8 --keep sharding=zero9").err,
              HasSubstr("--keep sharding=zero9: it is one of none, zero1, fsdp"));
  const Ran twice = plan_two_layers(scratch, "--gpus 8,4,8");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--gpus: 8 is named twice"));
  const Ran model = scratch.run("foretrace plan llama3-70 --gpus 8");
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("llama3-70b"));
}

}  // namespace
}  // namespace foretrace::test
