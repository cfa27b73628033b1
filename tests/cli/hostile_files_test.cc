// Timelines, environments, logs and directories that no harness wrote: exit code 2 with the file's
// name, quickly, and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;

/// run/measured.timeline.json as shipped, changed by the test.
class HostileFile : public testing::Test {
 protected:
  void change(const std::function<void(Json&)>& edit) const {
    const fs::path shipped =
        scratch_.path() / "reports/measured/prefetch_two_streams/measured.timeline.json";
    Json timeline = Json::parse(read_file(shipped));
    edit(timeline);
    fs::create_directories(scratch_.path() / "run");
    scratch_.write("run/measured.timeline.json", timeline.dump());
  }
  Ran run(const std::string& command) const { return scratch_.run(hostile_limits() + command); }
  void refuses(const std::string& command, const std::string& why) const {
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 2) << command << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("measured.timeline.json"));
    EXPECT_THAT(ran.err, HasSubstr(why));
  }

  Scratch scratch_;
};

TEST_F(HostileFile, ADeviceThatWouldFillTheMemory) {
  change([](Json& t) { t["lanes"][1]["device"] = 4294967294U; });
  refuses("foretrace export run --to kineto -o k", "device 4294967294");
}

TEST_F(HostileFile, JsonThatIsNestedAsDeepAsAStackIsLong) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  scratch_.write("results.jsonl", "{\"id\": \"a\", \"ranks\": " + deep + "}\n");
  const Ran table = run("foretrace training-table results.jsonl");
  EXPECT_EQ(table.exit_code, 2) << table.err;
  EXPECT_THAT(table.err, HasSubstr("results.jsonl:1: more than 64 brackets in one another"));
  change([](Json& t) { t.erase("starts"); });
  scratch_.write("run/environment.json", "{\"starts\": [{\"machine\": " + deep + "}]}");
  const Ran merged = run("foretrace merge --convert run");
  EXPECT_EQ(merged.exit_code, 2) << merged.err;
  EXPECT_THAT(merged.err, HasSubstr("environment.json: more than 64 brackets in one another"));
}

TEST_F(HostileFile, LoopsThatNeverRanAndSpansInThem) {
  change([](Json& t) {
    for (Json& op : t["ops"]) {
      if (op.contains("loops")) op["loops"] = Json::array({0});
    }
  });
  refuses("foretrace report run -o x.html", "a span's instance is 0 of 0");
}

TEST_F(HostileFile, ARegionThatIsNone) {
  change([](Json& t) { t["regions"][0]["op"] = 3; });
  refuses("foretrace fit run --machine h200-nvswitch-8 --judge", "points at a memcpy_async");
}

TEST_F(HostileFile, TheHashOfAProgramAndOtherOperations) {
  change([](Json& t) { t["ops"][7]["kind"] = "spin"; });
  refuses("foretrace fit run --machine h200-nvswitch-8 --judge", "its operations are not those of");
  refuses("foretrace assert run", "its operations are not those of");
}

TEST_F(HostileFile, ASourceThatNeverEnds) {
  ASSERT_EQ(::mkfifo((scratch_.path() / "pipe").c_str(), 0600), 0);
  for (const char* source : {"pipe", "/dev/zero", "."}) {
    change([&](Json& t) { t["scenario"]["file"] = source; });
    EXPECT_EQ(run("foretrace report run -o x.html").exit_code, 0) << source;
  }
  for (const char* command :
       {"foretrace check pipe", "foretrace check /dev/zero", "foretrace compare pipe pipe",
        "foretrace check run", "foretrace nccl-tests --compare pipe"}) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 2) << command;
  }
}

TEST_F(HostileFile, ControlCharactersInNames) {
  change([](Json& t) { t["ops"][0]["label"] = t["regions"][0]["name"] = "a\x01\x1b[31mb"; });
  EXPECT_EQ(run("foretrace report run --svg x.svg").exit_code, 0);
  const std::string svg = read_file(scratch_.path() / "x.svg");
  EXPECT_EQ(svg.find_first_of("\x01\x1b"), std::string::npos) << "not well-formed XML";
  change([](Json& t) { t["regions"][0]["name"] = "a\x1b[31mb"; });
  const Ran compared =
      run("foretrace compare run/measured.timeline.json run/measured.timeline.json");
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_EQ(compared.out.find('\x1b'), std::string::npos);
}

TEST_F(HostileFile, AnEnvironmentWhoseStartIsAWord) {
  change([](Json& t) { t.erase("starts"); });
  scratch_.write("run/environment.json", R"({"schema_version": 1, "starts": [{"start": "x"}]})");
  const Ran ran = run("foretrace merge run -o merged");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("run/environment.json"));
  EXPECT_FALSE(fs::exists(scratch_.path() / "merged"));
}

TEST_F(HostileFile, AnEnvironmentsKeyIsNoPath) {
  change([](Json& t) { t["starts"][0]["environment"] = "../../outside"; });
  fs::create_directories(scratch_.path() / "environments");
  scratch_.write("outside.json", "{}");
  EXPECT_EQ(run("foretrace merge run -o merged/deep").exit_code, 0);
  EXPECT_FALSE(fs::exists(scratch_.path() / "merged/outside.json"));
}

TEST_F(HostileFile, NamesKeyAndRowOfWhatIsWrong) {
  const auto refused_alike = [&](const std::string& why) {
    for (const char* command : {"report run -o x.html", "compare run run", "assert run"}) {
      refuses(std::string{"foretrace "} + command, why);
      EXPECT_THAT(run(std::string{"foretrace "} + command).err,
                  testing::Not(HasSubstr("json.exception")));
    }
  };
  change([](Json& t) { t["ops"][2].erase("line"); });
  refused_alike("row 2 of 'ops': 'line' is missing");
  change([](Json& t) { t["lanes"][1]["name"] = 7; });
  refused_alike("row 1 of 'lanes': 'name' is 7, and a text is needed");
  change([](Json& t) { t["regions"][0]["low_factor"] = std::string(3000, 'x'); });
  refused_alike("row 0 of 'regions': 'low_factor' is \"" + std::string(59, 'x') + "..., and");
  change([](Json& t) { t["spans"][5][1] = 1.5; });
  refused_alike("row 5 of 'spans': it may hold integers only");
  change([](Json& t) { t.erase("machine"); });
  refused_alike("'machine' is missing");
  scratch_.write("run/measured.timeline.json", "{\"kind\": " + std::string(3000, 'y'));
  refused_alike("not JSON: parse error at line 1, column 10");
}

/// A style beside the program is a file as others are.
TEST_F(HostileFile, AStyleThatIsNone) {
  scratch_.write(
      "step.yaml",
      "schema_version: 1\nname: t\nprocesses: 1\ntraining_step: {model: llama3.2-1b, batch: "
      "{sequence: 128, micro: 2, global: 2}, optimizer: adamw, code: huggingface}\n");
  ASSERT_EQ(scratch_
                .run("mkdir -p data/models data/scenarios; cp -rL models/machines models/kernels "
                     "data/models; cp -rL scenarios/architectures scenarios/styles data/scenarios")
                .exit_code,
            0);
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const auto& [text, why] :
       {std::pair{"[", "no style that capture's tools wrote"},
        std::pair{"[]", "no style that capture's tools wrote"},
        std::pair{"{}", "a JSON file that was read is not as it should be"},
        std::pair{deep.c_str(), "llama.json.gz: more than 64 brackets in one another"}}) {
    scratch_.write("data/scenarios/styles/huggingface/llama.json.gz", text);
    const Ran ran = scratch_.run("FORETRACE_DATA=$PWD/data foretrace simulate step.yaml");
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(why));
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("json.exception")));
  }
}

TEST_F(HostileFile, TheSameRunTwice) {
  change([](Json&) {});
  refuses("foretrace merge run run -o merged", "would count twice");
  EXPECT_FALSE(fs::exists(scratch_.path() / "merged"));
}

TEST_F(HostileFile, TimesThatAreNoNumbers) {
  scratch_.write("measured.timeline.json",
                 "# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: "
                 "20 agg iters: 1 validation: 0 graph: 0\n"
                 "# all_reduce_perf\n"
                 "#       size         count      type   redop    root     time   algbw   busbw "
                 "#wrong     time   algbw   busbw #wrong\n"
                 "           8             2     float     sum      -1      nan    0.00    0.00    "
                 "N/A     7.5    0.00    0.00    N/A\n");
  refuses("foretrace nccl-tests --compare measured.timeline.json --tolerance 1%",
          ":4:59: error: 'nan' is not a number");
}

TEST_F(HostileFile, AScenarioThatCheckWouldRefuseIsNotWritten) {
  const Ran wrong = run(
      "foretrace nccl-tests all_reduce -b 1M --processes 2 --env NCCL_ALGO=rign --scenario s.yaml");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("NCCL_ALGO"));
  const Ran unknown = run(
      "foretrace nccl-tests all_reduce -b 1M --processes 2 --env NCCL_AGLO=ring --scenario s.yaml");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'NCCL_ALGO'?"));
  EXPECT_FALSE(fs::exists(scratch_.path() / "s.yaml"));
}

TEST_F(HostileFile, AMachineOfImpossibleSize) {
  const std::string shipped = read_file(scratch_.path() / "models/machines/one-copy-engine.yaml");
  std::string text = shipped;
  const auto at = text.find("gpus: 2");
  ASSERT_NE(at, std::string::npos);
  scratch_.write("big.yaml", text.replace(at, 7, "gpus: 1000000"));
  const Ran ran = run("foretrace nccl-explain all_reduce 1MiB --machine big.yaml");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("is not a count between 1 and 256"));
}

TEST_F(HostileFile, MachineFilesThatAreNowhere) {
  const Ran ran = run("env FORETRACE_MACHINES=/nowhere foretrace list machines");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("/nowhere"));
  EXPECT_THAT(ran.err, HasSubstr("FORETRACE_MACHINES"));
}

}  // namespace
}  // namespace foretrace::test
