// Options that several commands share: spelled alike, checked before the work, and answers in the
// form that --format or a file's ending asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPipeline = "scenarios/examples/prefetch_two_streams.yaml";

class Options : public testing::Test {
 protected:
  Ran run(const std::string& command) const { return scratch_.run("foretrace " + command); }
  Scratch scratch_;
};

// ---- spelling -----------------------------------------------------------------------------------

TEST_F(Options, OfTheMachineHaveOneNameAndOneDefault) {
  for (const char* command :
       {"simulate", "sweep", "plan", "table", "figures", "accuracy", "training-table", "import",
        "fit-products", "nccl-tests", "nccl-explain", "nccl-tuner", "explain-kernel"}) {
    const std::string help = run(std::string{command} + " --help").out;
    // As CLI11 2.3 or 2.4 writes defaults.
    EXPECT_THAT(help, testing::ContainsRegex("-m,--machine TEXT(=| .)h200-nvswitch-8")) << command;
  }
  for (const char* command : {"check", "explain", "report", "fit"}) {
    EXPECT_THAT(run(std::string{command} + " --help").out, HasSubstr("-m,--machine TEXT"))
        << command;
  }
}

TEST_F(Options, ThatWereNotGivenSayWhichMachineWasTaken) {
  const std::string simulate = std::string{"simulate "} + kPipeline;
  EXPECT_THAT(run(simulate).out,
              HasSubstr("on h200-nvswitch-8, the default: --machine names another"));
  EXPECT_THAT(run(simulate + " -m h100-nvswitch-8").out,
              AllOf(HasSubstr("on h100-nvswitch-8\n"), Not(HasSubstr("the default"))));
}

TEST_F(Options, HaveTheNamesThatNeighboursGiveThem) {
  const auto out = [&](const std::string& command) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 0) << command << ran.err;
    return ran.out;
  };
  EXPECT_EQ(out("nccl-explain all_reduce 1M --processes 4 -d bfloat16"),
            out("nccl-explain all_reduce 1M --ranks 4 --type bfloat16"));
  EXPECT_EQ(out("nccl-tests all_reduce -b 1M --processes 4 -d half"),
            out("nccl-tests all_reduce -b 1M --ranks 4 --type half -m 1"));
  EXPECT_EQ(out("explain-kernel gemm 512x512x512 --datatype bfloat16"),
            out("explain-kernel gemm 512x512x512 --type bfloat16"));
  for (const char* command : {"nccl-explain", "nccl-tests", "explain-kernel"}) {
    const std::string help = run(std::string{command} + " --help").out;
    EXPECT_THAT(help, AllOf(HasSubstr("-d,--datatype"), Not(HasSubstr("--type")),
                            Not(HasSubstr("--ranks"))));
  }
  EXPECT_EQ(run("nccl-explain all_reduce 1M --ranks 4 --processes 4").exit_code, 2);
  EXPECT_EQ(run("nccl-tests all_reduce -b 1M -m 4").exit_code, 2) << "four operations in a group";
}

// ---- units --------------------------------------------------------------------------------------

TEST_F(Options, TakeTheRatesThatNicsAreSoldIn) {
  const Ran ran = run(std::string{"simulate "} + kPipeline + " --with 'nic=400 Gb/s'");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("what if node.nic_bandwidth were 50 GB/s"));
}

TEST_F(Options, CountInThousandsOfTwo) {
  const std::string plan =
      "plan gpt2 --gpus 2 --global-batch 16 --keep tensor=1 --keep pipeline=1 --keep micro=1 "
      "--keep recompute=none --keep sharding=zero1 --top 1 ";
  const Ran in_words = run(plan + "--sequence 1k");
  EXPECT_EQ(in_words.exit_code, 0) << in_words.err;
  EXPECT_EQ(in_words.out, run(plan + "--sequence 1024").out);
  EXPECT_EQ(run(plan + "--sequence 1.5k").exit_code, 2);
  EXPECT_EQ(run(plan + "--sequence 99999999999999M").exit_code, 2);
}

// ---- where answers go ---------------------------------------------------------------------------

TEST_F(Options, NameNoDirectoryThatIsNotThere) {
  const Ran simulated = run(std::string{"simulate "} + kPipeline + " -o run");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  for (const char* command :
       {"plan gpt2 --gpus 2 -o nowhere/p.html",
        "compare run -o nowhere/c.md",
        "plan gpt2 --gpus 2 --write-scenario 1 nowhere/p.yaml",
        "order run -o nowhere/c.json",
        "assert run -o nowhere/a.csv",
        "report run -o nowhere/r.html",
        "report run --svg nowhere/r.svg",
        "export run --to csv -o nowhere/e.csv",
        "export run --to perfetto -o nowhere/e.pftrace",
        "accuracy -o nowhere/a.html",
        "fit reports/measured/calibrate_copies -m h200-nvswitch-8 -o nowhere/m.yaml",
        "fit reports/measured/calibrate_copies -m h200-nvswitch-8 --judge --residuals nowhere/r",
        "sweep scenarios/nccl/all_reduce.yaml --set ranks=2 -o nowhere/s.jsonl",
        "sweep scenarios/nccl/all_reduce.yaml --set ranks=2 -o s.jsonl --csv nowhere/s.csv",
        "nccl-tests all_reduce -b 1M --processes 2 --output nowhere/t.md",
        "nccl-tests all_reduce -b 1M --processes 2 --scenario nowhere/t.yaml",
        "nccl-explain all_reduce 1M -o nowhere/e.json",
        "explain run -o nowhere/e.md",
        "table scenarios/conformance -o nowhere/t.csv",
        "import nothing.json --scenario nowhere/s.yaml"}) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 4) << command << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("there is no directory nowhere"),
                               HasSubstr("hint: mkdir -p nowhere")))
        << command;
    EXPECT_EQ(ran.out, "") << command << ": the work had begun";
  }
  EXPECT_FALSE(fs::exists(scratch_.path() / "s.jsonl"));
}

TEST_F(Options, RefuseFilesOfKindsThatNobodyWrites) {
  ASSERT_EQ(run(std::string{"simulate "} + kPipeline + " -o run").exit_code, 0);
  for (const char* command :
       {"plan gpt2 --gpus 2 -o plan.pdf", "compare run -o c.pdf", "report run -o r.pdf",
        "report run --svg r.png", "accuracy -o a.xlsx", "explain-kernel gemm 64x64x64 -o k.html",
        "nccl-tests all_reduce -b 1M --processes 2 --scenario s.json",
        "fit reports/measured/calibrate_copies -m h200-nvswitch-8 -o m.json",
        "compare run --format csv -o c.json", "accuracy --blind-only --format html -o a.md"}) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
    EXPECT_EQ(ran.out, "") << command;
    EXPECT_THAT(ran.err, testing::AnyOf(HasSubstr("its name ends in"),
                                        HasSubstr("no command writes a file of this kind"),
                                        HasSubstr("its ending says another format")))
        << command;
  }
}

TEST_F(Options, OfAFileSayItsFormatByItsEnding) {
  ASSERT_EQ(run("explain-kernel gemm 512x512x512 -o k.json").exit_code, 0);
  ASSERT_EQ(run("explain-kernel gemm 512x512x512 -o k.csv").exit_code, 0);
  const auto json = nlohmann::json::parse(read_file(scratch_.path() / "k.json"));
  EXPECT_EQ(json["kind"], "explain-kernel");
  EXPECT_GT(json["times"].at(0)["seconds"], 0);
  EXPECT_THAT(read_file(scratch_.path() / "k.csv"),
              testing::StartsWith("contents,state,seconds,clock,flop_per_second\n"));
}

// ---- answers for programs -----------------------------------------------------------------------

TEST_F(Options, OfFormatMakeEveryAnswerJson) {
  for (const auto& [command, kind] : std::vector<std::pair<std::string, std::string>>{
           {std::string{"simulate "} + kPipeline, "simulation"},
           {"accuracy --blind-only", "accuracy"},
           {"fit reports/measured/calibrate_copies -m h200-nvswitch-8 --judge", "fit"},
           {"explain-kernel gemm 512x512x512", "explain-kernel"},
           {"training-table reports/measured/pytorch_steps/h200_x2/results.jsonl.gz --only gpt2",
            "training-table"}}) {
    const Ran ran = run(command + " --format json");
    EXPECT_EQ(ran.exit_code, 0) << command << ran.err;
    const auto json = nlohmann::json::parse(ran.out, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << command << ran.out.substr(0, 200);
    EXPECT_EQ(json.value("kind", ""), kind) << command;
  }
}

TEST_F(Options, OfFormatGiveSimulatesRegionsARowEach) {
  scratch_.write("x.yaml",
                 "# x\nschema_version: 1\nname: x\nprocesses: 3\nthreads:\n  main:\n"
                 "    - region: {name: work, per: 2, ops: [host_compute: {duration: "
                 "'100us * (process + 1)'}]}\n");
  const Ran text = run("simulate x.yaml");
  EXPECT_THAT(text.out, HasSubstr("| region   | line | predicted | band | slowest process | "));
  EXPECT_THAT(text.out, HasSubstr("| work / 2 |    7 |  150.0 us |    - |               2 | "
                                  "50.00 us, process 0 |"));
  const Ran csv = run("simulate x.yaml --format csv");
  EXPECT_EQ(csv.out,
            "region,line,instance,per,predicted_ns,low_ns,high_ns,process,processes,"
            "fastest_process,fastest_ns\n"
            "work,7,0,2,150000.0,150000.0,150000.0,2,3,0,50000.0\n");
  const auto json = nlohmann::json::parse(run("simulate x.yaml --format json").out);
  ASSERT_EQ(json["regions"].size(), 1U);
  EXPECT_EQ(json["regions"][0]["process"], 2);
  EXPECT_EQ(json["regions"][0]["predicted_ns"], 150000.0);
  EXPECT_EQ(json["machine"], "h200-nvswitch-8");
}

TEST_F(Options, OfFormatGiveATrainingStepItsShares) {
  scratch_.write("s.yaml",
                 "schema_version: 1\nname: s\nprocesses: 1\n"
                 "training_step: {model: gpt2, batch: {sequence: 1k}}\n");
  const auto json = nlohmann::json::parse(run("simulate s.yaml --format json").out);
  const auto& step = json["training_step"];
  EXPECT_GT(step["seconds"], 0);
  EXPECT_NEAR(step["tokens_per_second"].get<double>(), 1024 / step["seconds"].get<double>(), 1);
  EXPECT_NEAR(step["computing"].get<double>() + step["communication"].get<double>() +
                  step["waiting"].get<double>() + step["idle"].get<double>(),
              1, 1e-6);
  EXPECT_GT(step["memory"]["bytes"], 1e8);
}

}  // namespace
}  // namespace foretrace::test
